package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
)

func load(t *testing.T, text string) (*types.Project, error) {
	t.Helper()
	directory, err := filepath.Abs(files)
	if err != nil {
		t.Fatal(err)
	}
	return loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir:  directory,
		ConfigFiles: []types.ConfigFile{{Filename: "compose.yaml", Content: []byte(text)}},
	})
}

// TestCompose: the loader of Docker Compose accepts the file. The image is built from files
// that exist, and the files that the service reads are mounted.
func TestCompose(t *testing.T) {
	text := read(t, "compose.yaml")
	project, err := load(t, text)
	if err != nil {
		t.Fatal(err)
	}
	service := project.Services["service"]
	if _, err := os.Stat(filepath.Join(service.Build.Context, service.Build.Dockerfile)); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(service.Build.Context, "go.mod")); err != nil {
		t.Error(err)
	}
	checkArguments(t, service.Command...)
	mounted := map[string]bool{}
	for _, secret := range service.Secrets {
		mounted["/run/secrets/"+secret.Source] = true
	}
	reads := strings.Join(service.Command, " ")
	for _, value := range service.Environment {
		reads += " " + *value
	}
	for path := range mounted {
		if !strings.Contains(reads, path) {
			t.Errorf("nothing reads %s", path)
		}
		reads = strings.ReplaceAll(reads, path, "")
	}
	if strings.Contains(reads, "/run/secrets") {
		t.Errorf("not mounted: %s", reads)
	}
	for broken, old := range map[string]string{"drain": "read_only", "databas": "database: {condition", "[more]": "[master, store]"} {
		if _, err := load(t, strings.Replace(text, old, broken, 1)); err == nil {
			t.Errorf("accepted with %s for %s", broken, old)
		}
	}
}

// TestSecretsStay: neither git nor a build of the image takes the secrets that Compose reads.
func TestSecretsStay(t *testing.T) {
	project, err := load(t, read(t, "compose.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	root := project.Services["service"].Build.Context
	if len(project.Secrets) == 0 {
		t.Error("there are no secrets")
	}
	for name, secret := range project.Secrets {
		if output, err := exec.CommandContext(t.Context(), "git", "-C", root, "check-ignore", "--no-index", secret.File).CombinedOutput(); err != nil {
			t.Errorf("git doesn't ignore the secret %s: %v %s", name, err, output)
		}
		path, err := filepath.Rel(root, secret.File)
		if err != nil {
			t.Fatal(err)
		}
		isExcluded := false
		for line := range strings.Lines(read(t, "Dockerfile.dockerignore")) {
			isExcluded = isExcluded || strings.HasPrefix(filepath.ToSlash(path), strings.TrimSpace(line)+"/")
		}
		if !isExcluded {
			t.Errorf("the image is built with the secret %s", name)
		}
	}
}
