package deploy_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// manifest has the objects in kubernetes.yaml.
type manifest struct {
	secret     corev1.Secret
	deployment appsv1.Deployment
	service    corev1.Service
}

// decode decodes strictly: an unknown or repeated field is an error.
func decode(text string) (m manifest, err error) {
	for document := range strings.SplitSeq(text, "\n---\n") {
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal([]byte(document), &kind); err != nil {
			return m, err
		}
		into, ok := map[string]any{"v1 Secret": &m.secret, "apps/v1 Deployment": &m.deployment, "v1 Service": &m.service}[kind.APIVersion+" "+kind.Kind]
		if !ok {
			return m, fmt.Errorf("unexpected %v", kind)
		}
		text, err := yaml.YAMLToJSONStrict([]byte(document))
		if err != nil {
			return m, err
		}
		// Like the API server, and unlike encoding/json, this distinguishes letter case.
		unknown, err := json.UnmarshalStrict(text, into)
		if err := errors.Join(err, errors.Join(unknown...)); err != nil {
			return m, err
		}
	}
	return m, nil
}

// TestManifest: the manifest has only known fields, and its parts fit together.
func TestManifest(t *testing.T) {
	text := read(t, "kubernetes.yaml")
	m, err := decode(text)
	if err != nil {
		t.Fatal(err)
	}
	pod := m.deployment.Spec.Template
	for key, value := range m.deployment.Spec.Selector.MatchLabels {
		if pod.Labels[key] != value || m.service.Spec.Selector[key] != value {
			t.Errorf("label %s of the pod is %q, and the service selects %q", key, pod.Labels[key], m.service.Spec.Selector[key])
		}
	}
	volume := pod.Spec.Volumes[0]
	if volume.Secret.SecretName != m.secret.Name || *volume.Secret.DefaultMode != 0o440 {
		t.Errorf("the volume has the secret %q with mode %o", volume.Secret.SecretName, *volume.Secret.DefaultMode)
	}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		checkArguments(t, slices.DeleteFunc(slices.Clone(c.Args), func(arg string) bool { return arg == "migrate" })...)
		if mount := c.VolumeMounts[0]; mount.Name != volume.Name || !mount.ReadOnly {
			t.Errorf("%s mounts %+v", c.Name, mount)
		}
		reads := strings.Join(c.Args, " ")
		for _, variable := range c.Env {
			reads += " " + variable.Value
		}
		for key := range m.secret.StringData {
			reads = strings.ReplaceAll(reads, c.VolumeMounts[0].MountPath+"/"+key, "")
		}
		if strings.Contains(reads, c.VolumeMounts[0].MountPath) {
			t.Errorf("%s reads what the secret doesn't have: %s", c.Name, reads)
		}
		if s := c.SecurityContext; *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || !slices.Contains(s.Capabilities.Drop, "ALL") {
			t.Errorf("%s has the security context %v", c.Name, s)
		}
	}
	c := pod.Spec.Containers[0]
	for i, want := range []string{"-listen=:", "-metrics=:"} {
		if got := want + fmt.Sprint(c.Ports[i].ContainerPort); c.Args[i] != got {
			t.Errorf("port %s needs %s, the program gets %s", c.Ports[i].Name, got, c.Args[i])
		}
	}
	for broken, old := range map[string]string{"runAsNonroot": "runAsNonRoot", "replicas: two": "replicas: 2", "kind: Deploymint": "kind: Deployment"} {
		if !strings.Contains(text, old) {
			t.Errorf("no %s", old)
		}
		if _, err := decode(strings.Replace(text, old, broken, 1)); err == nil {
			t.Errorf("accepted with %s", broken)
		}
	}
}
