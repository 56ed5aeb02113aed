package deploy_test

import (
	"os"
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
	for broken, old := range map[string]string{"drain": "read_only", "databas": "database: {condition", "[more]": "[credentials, master, store]"} {
		if _, err := load(t, strings.Replace(text, old, broken, 1)); err == nil {
			t.Errorf("accepted with %s for %s", broken, old)
		}
	}
}
