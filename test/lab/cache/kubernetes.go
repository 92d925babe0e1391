package cache

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

var kubernetesVersion = regexp.MustCompile(`(?m)^\s*(?:require )?k8s\.io/kubernetes (v1\.(\d+)\.\S+)( // indirect)?$`)

// Kubernetes returns the directory of a control plane's programs and kubectl, built by the module in source.
func (c *Cache) Kubernetes(ctx context.Context, source string) (string, error) {
	return c.kubernetes(
		ctx,
		"kubernetes",
		source,
		"k8s.io/kubernetes/cmd/kube-apiserver",
		"./kube-controllers",
		"k8s.io/kubernetes/cmd/kubectl",
	)
}

// KubernetesNode returns the directory of the programs that only a lab with a node needs.
func (c *Cache) KubernetesNode(ctx context.Context, source string) (string, error) {
	return c.kubernetes(
		ctx,
		"kubernetes-node",
		source,
		"k8s.io/kubernetes/cmd/kube-controller-manager",
		"k8s.io/kubernetes/cmd/kubelet",
		"k8s.io/kubernetes/cmd/kube-proxy",
		"k8s.io/kubernetes/cmd/kube-scheduler",
	)
}

func (c *Cache) kubernetes(ctx context.Context, name, source string, programs ...string) (string, error) {
	mod, err := os.ReadFile(filepath.Join(source, "go.mod"))
	if err != nil {
		return "", err
	}
	match := kubernetesVersion.FindStringSubmatch(string(mod))
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
	return c.programs(ctx, name, source, ldflags, programs...)
}

// Containerd returns the directory of the programs that the module in source names as its tools.
func (c *Cache) Containerd(ctx context.Context, source string) (string, error) {
	return c.programs(ctx, "containerd", source, "-s -w", "tool")
}

// Helm returns the directory of helm, built by the module in source.
func (c *Cache) Helm(ctx context.Context, source string) (string, error) {
	// Without it helm takes every cluster that it is not connected to for Kubernetes 1.20.
	return c.programs(
		ctx,
		"helm",
		source,
		"-s -w -X helm.sh/helm/v3/pkg/chartutil.k8sVersionMajor=1 -X helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor=36",
		"tool",
	)
}

// programs builds packages of the module in source.
func (c *Cache) programs(ctx context.Context, name, source, ldflags string, packages ...string) (string, error) {
	own, err := filepath.Glob(filepath.Join(source, "*", "*.go"))
	if err != nil {
		return "", err
	}
	recipe := ldflags + strings.Join(packages, " ")
	for _, file := range append(own, filepath.Join(source, "go.mod"), filepath.Join(source, "go.sum")) {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		recipe += string(text)
	}
	return c.artifact(ctx, name, recipe, func(ctx context.Context, dir string) error {
		return c.GoBuild(ctx, name, source, dir+"/", ldflags, packages...)
	})
}
