package cache

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// foreign is a project whose programs and manifests come from its Go module, with the dependencies of its own go.mod.
type foreign struct {
	name     string
	packages []string
	// ldflags has a verb for the module's path and one for its version.
	ldflags string
	// kept are the directories of the module, beside bin, that stay in the cache.
	kept []string
	// copied are files that the module lacks, by the file that serves as well.
	copied map[string]string
}

// Argo returns the directory of Argo's controller and executor (bin) and of its manifests, in the version that the
// module in source requires. The module as it is stored lacks a file without which its executor cannot be built for
// Linux.
func (c *Cache) Argo(ctx context.Context, source string) (string, error) {
	return c.foreign(ctx, source, foreign{
		name: "argo", packages: []string{"./cmd/workflow-controller", "./cmd/argoexec"},
		ldflags: "-s -w -X %s.version=%s", kept: []string{"manifests"},
		copied: map[string]string{
			"workflow/executor/osspecific/signal_linux.go": "workflow/executor/osspecific/signal_darwin.go",
		},
	})
}

// Kueue returns the directory of Kueue's manager (bin) and of its manifests (config).
func (c *Cache) Kueue(ctx context.Context, source string) (string, error) {
	return c.foreign(ctx, source, foreign{
		name: "kueue", packages: []string{"./cmd/kueue"}, ldflags: "-s -w -X %s/pkg/version.GitVersion=%s",
		kept: []string{"config"},
	})
}

// foreign builds a project in a copy of its module, which go.sum in source vouches for.
func (c *Cache) foreign(ctx context.Context, source string, f foreign) (string, error) {
	recipe := fmt.Sprintf("%v", f)
	for _, file := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(source, file))
		if err != nil {
			return "", err
		}
		recipe += string(text)
	}
	return c.artifact(ctx, f.name, recipe, func(ctx context.Context, dir string) error {
		download := exec.CommandContext(ctx, "go", "mod", "download", "-json") // of the only one that go.mod names
		download.Dir, download.Env = source, append(os.Environ(), "GOWORK=off")
		text, err := download.Output()
		var module struct{ Path, Version, Dir, Error string }
		if err := errors.Join(err, json.Unmarshal(text, &module)); err != nil {
			return fmt.Errorf("download %s: %w: %s", f.name, err, module.Error)
		}
		copied := filepath.Join(dir, "source")
		if err := os.CopyFS(copied, os.DirFS(module.Dir)); err != nil {
			return err
		}
		for missing, like := range f.copied {
			text, err := os.ReadFile(filepath.Join(copied, like))
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(copied, missing), text, 0o644); err != nil {
				return err
			}
		}
		// Nobody waits for it: two compilers at a time leave room for others. A vendor directory, which no module has
		// whole, is not used.
		args := []string{
			"build", "-p", "2", "-mod=readonly", "-ldflags", fmt.Sprintf(f.ldflags, module.Path, module.Version),
			"-o", filepath.Join(dir, "bin") + "/",
		}
		cmd := exec.Command("nice", slices.Concat([]string{"go"}, args, BuildFlags, f.packages)...)
		cmd.Dir = copied
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
		if err := c.run(ctx, cmd, f.name); err != nil {
			return err
		}
		for _, name := range f.kept {
			if err := os.Rename(filepath.Join(copied, name), filepath.Join(dir, name)); err != nil {
				return err
			}
		}
		return os.RemoveAll(copied)
	})
}
