package cache

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// BuildFlags are those of all programs of the lab, its own and htcd included: programs that share a package, also that
// of another module in the same version, then share its compilation. Debug information takes a tenth of the compiler's
// time, inlining a third; the packages without inlining are those that serve Kubernetes' own resources and nothing
// else.
var BuildFlags = []string{
	"-trimpath",
	"-gcflags",
	"all=-dwarf=false",
	"-gcflags",
	"k8s.io/kubernetes/...=-dwarf=false -l",
}

// BuildEnv is the environment of their builds. The compiler collects garbage less often than by default: that saves a
// tenth of its time, for twice its memory.
func BuildEnv() []string { return append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOGC=400") }

// GoBuild builds packages of the module in dir to a file or a directory, and says how many of those that must be
// compiled it has begun.
func (c *Cache) GoBuild(ctx context.Context, name, dir, to, ldflags string, packages ...string) error {
	flags := append(slices.Clone(BuildFlags), "-ldflags", ldflags)
	list := exec.Command(
		"go",
		slices.Concat([]string{"list", "-deps", "-f", "{{if .Stale}}{{.ImportPath}}{{end}}"}, flags, packages)...)
	stale := &staleness{}
	if err := c.follow(ctx, inModule(list, dir), name, stale); err != nil {
		return err
	}
	build := exec.Command("go", slices.Concat([]string{"build", "-v", "-o", to}, flags, packages)...)
	return c.follow(ctx, inModule(build, dir), name, &compiling{all: stale.count})
}

func inModule(cmd *exec.Cmd, dir string) *exec.Cmd {
	cmd.Dir, cmd.Env = dir, BuildEnv()
	return cmd
}

// staleness is the account of go list, which names the packages to compile, after the modules that it downloads.
type staleness struct {
	latest
	count int
}

func (s *staleness) line(text string) {
	if strings.Contains(text, " ") {
		s.latest.line(text)
	} else if text != "" {
		s.count++
	}
}
