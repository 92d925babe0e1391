package cache

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

var kubernetesVersion = regexp.MustCompile(`(?m)^\s*(?:require )?k8s\.io/kubernetes (v1\.(\d+)\.\S+)( // indirect)?$`)

// Kubernetes returns the directory of the programs that the module in source names as its tools.
func (c *Cache) Kubernetes(ctx context.Context, source string) (string, error) {
	var recipe strings.Builder
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(source, name))
		if err != nil {
			return "", err
		}
		recipe.Write(text)
	}
	match := kubernetesVersion.FindStringSubmatch(recipe.String())
	if match == nil {
		return "", fmt.Errorf("%s/go.mod does not say which k8s.io/kubernetes", source)
	}
	// Without these the programs call themselves v0.0.0-master.
	const pkg = "k8s.io/component-base/version."
	ldflags := "-s -w"
	for _, v := range []string{"gitVersion=" + match[1], "gitMajor=1", "gitMinor=" + match[2],
		"gitCommit=" + match[1], "gitTreeState=clean"} {
		ldflags += " -X " + pkg + v
	}
	recipe.WriteString(ldflags)
	return c.artifact(ctx, "kubernetes", recipe.String(), func(ctx context.Context, dir string) error {
		cmd := exec.Command("go", "build", "-trimpath", "-ldflags", ldflags, "-o", dir+"/", "tool")
		cmd.Dir = source
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
		return c.run(ctx, cmd, "kubernetes")
	})
}
