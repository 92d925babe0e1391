package cache

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Operator is the image of htcd to build.
type Operator struct {
	// Clone is the directory of htcd's sources, with the Dockerfile.
	Clone string
	// Version, Revision and Created appear in the image's labels; Version is also its tag.
	Version, Revision, Created string
	// Architecture of the image, amd64 or arm64; by default this machine's.
	Architecture string
	// Fresh fetches every package from Debian again, instead of using those of earlier builds.
	Fresh bool
	// Archive is the file that the image is written to, in the format of docker save.
	Archive string
}

// BuildOperator builds htcd's image with its Dockerfile. A base image that is neither present nor available is made
// from Debian's packages and this machine's Go.
func (c *Cache) BuildOperator(ctx context.Context, o Operator) error {
	dockerfile, err := os.ReadFile(filepath.Join(o.Clone, "Dockerfile"))
	if err != nil {
		return err
	}
	e, err := c.engine(ctx)
	if err != nil {
		return err
	}
	bases := baseImages(string(dockerfile))
	// Debian first: Go's is built on it.
	slices.Sort(bases)
	for _, base := range bases {
		if e.has(ctx, base) {
			continue
		}
		c.Log("image: %s cannot be pulled: made from Debian's packages", base)
		if err := c.standIn(ctx, e, base, bases); err != nil {
			return fmt.Errorf("make %s: %w", base, err)
		}
	}

	args := []string{
		"--build-arg", "VERSION=" + o.Version, "--build-arg", "REVISION=" + o.Revision,
		"--build-arg", "CREATED=" + o.Created,
	}
	// An image for another machine takes no name from one that this machine can run.
	tag, built := "htcd:"+o.Version, "htcd:"+o.Version
	if o.Architecture != "" && o.Architecture != runtime.GOARCH {
		built = "htcd-" + o.Architecture + ":" + o.Version
		args = append(args, "--platform", "linux/"+o.Architecture)
	}
	if o.Fresh {
		args = append(args, "--no-cache")
	}
	if e.podman != nil {
		caches, err := goCaches(ctx)
		if err != nil {
			return err
		}
		// Its older versions set this to nothing.
		args = append(append(args, caches...), "--build-arg", "BUILDPLATFORM=linux/"+runtime.GOARCH)
	}
	if err := e.build(ctx, built, o.Clone, "", args...); err != nil {
		return err
	}
	if err := e.save(ctx, built, tag, o.Archive); err != nil {
		return err
	}
	return e.forget(ctx)
}

// baseImages returns the images from which the stages of a Dockerfile start when built without arguments, each once,
// without scratch and other stages.
func baseImages(dockerfile string) []string {
	var bases, stages []string
	defaults := map[string]string{}
	for line := range strings.Lines(dockerfile) {
		f := strings.Fields(line)
		if len(f) == 2 && strings.EqualFold(f[0], "ARG") {
			name, value, _ := strings.Cut(f[1], "=")
			defaults[name] = value
		}
		if len(f) < 2 || !strings.EqualFold(f[0], "FROM") {
			continue
		}
		f = slices.DeleteFunc(f, func(word string) bool { return strings.HasPrefix(word, "--platform=") })
		f[1] = os.Expand(f[1], func(name string) string { return defaults[name] })
		if f[1] != "scratch" && !slices.Contains(stages, f[1]) && !slices.Contains(bases, f[1]) {
			bases = append(bases, f[1])
		}
		if len(f) == 4 && strings.EqualFold(f[2], "AS") {
			stages = append(stages, f[3])
		}
	}
	return bases
}

//go:embed debian-base.sh
var debianBaseScript string

// baseSuite is the Debian release of both images.
const baseSuite = "trixie"

// standIn makes an image under the name of an unavailable one.
func (c *Cache) standIn(ctx context.Context, e *engine, image string, bases []string) error {
	name, tag, _ := strings.Cut(image, ":")
	switch name {
	case "debian":
		dir, err := c.debianBase(ctx)
		if err != nil {
			return err
		}
		return e.load(ctx, image, dir)
	case "golang":
		version, err := goEnv(ctx, "GOVERSION")
		if err != nil {
			return err
		}
		if !strings.HasPrefix("go"+tag, version+"-") {
			return fmt.Errorf("this machine has %s", version)
		}
		root, err := goEnv(ctx, "GOROOT")
		if err != nil {
			return err
		}
		i := slices.IndexFunc(bases, func(b string) bool { return strings.HasPrefix(b, "debian:") })
		if i < 0 {
			return fmt.Errorf("no Debian among %v to put it on", bases)
		}
		return e.build(ctx, image, root, "FROM "+bases[i]+"\nCOPY . /usr/local/go\n"+
			"ENV GOPATH=/go GOTOOLCHAIN=local PATH=/go/bin:/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n")
	}
	return fmt.Errorf("no recipe for it")
}

func (c *Cache) debianBase(ctx context.Context) (string, error) {
	return c.artifact(ctx, "debian-base", debianBaseScript+baseSuite, func(ctx context.Context, dir string) error {
		if err := c.HostPackages(ctx); err != nil {
			return err
		}
		mirror, err := debianMirror("/etc/apt", os.Getenv("HTCD_DEBIAN_MIRROR"))
		if err != nil {
			return err
		}
		cmd := exec.Command("/bin/sh", "-c", debianBaseScript, "debian-base", dir, baseSuite, mirror, debianKeyring)
		return c.run(ctx, namespaced(cmd), "debian-base")
	})
}

// goCaches lets the build use the modules and packages already on this machine.
func goCaches(ctx context.Context) ([]string, error) {
	var args []string
	for variable, inside := range map[string]string{"GOMODCACHE": "/go/pkg/mod", "GOCACHE": "/root/.cache/go-build"} {
		dir, err := goEnv(ctx, variable)
		if err != nil {
			return nil, err
		}
		args = append(args, "--volume", dir+":"+inside)
	}
	proxy, err := goEnv(ctx, "GOPROXY")
	return append(args, "--build-arg", "GOPROXY="+proxy), err
}

func goEnv(ctx context.Context, variable string) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", variable).Output()
	return strings.TrimSpace(string(out)), err
}
