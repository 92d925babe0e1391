package cache

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// engine builds images: docker if its daemon answers, else podman, which needs none.
type engine struct {
	cache *Cache
	// podman is empty for docker.
	podman []string
}

func (c *Cache) engine(ctx context.Context) (*engine, error) {
	if exec.CommandContext(ctx, "docker", "info").Run() == nil {
		return &engine{cache: c}, nil
	}
	if _, err := exec.LookPath("podman"); err != nil {
		if err := c.install(ctx, "podman"); err != nil {
			return nil, err
		}
	}
	// Its own images: those of the machine's podman are neither used nor touched.
	return &engine{
		cache: c,
		podman: []string{
			"podman",
			"--root",
			filepath.Join(c.Dir, "containers"),
			"--runroot",
			"/run/htcd",
			"--tmpdir",
			"/run/htcd/tmp",
			"--storage-driver",
			"overlay",
			"--cgroup-manager",
			"cgroupfs",
			"--events-backend",
			"none",
		},
	}, nil
}

// podmanWorld gives podman its own /run and shared memory, so that the remains of a killed podman vanish with it.
const podmanWorld = `set -e
mount --make-rprivate /
mount -t proc proc /proc
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /dev/shm
exec "$@"`

func (e *engine) command(args ...string) *exec.Cmd {
	if e.podman == nil {
		return exec.Command("docker", args...)
	}
	all := append([]string{"-c", podmanWorld, "podman"}, append(e.podman, args...)...)
	return namespaced(exec.Command("/bin/sh", all...))
}

// has reports whether the image exists or can be pulled.
func (e *engine) has(ctx context.Context, image string) bool {
	return e.cache.run(ctx, e.command("image", "inspect", image), "image") == nil ||
		e.cache.run(ctx, e.command("pull", "--quiet", image), "image") == nil
}

// load makes an image of a directory as it is, including owners.
func (e *engine) load(ctx context.Context, tag, dir string) error {
	tar := exec.CommandContext(ctx, "tar", "-C", dir, "--numeric-owner", "-c", ".")
	out, err := tar.StdoutPipe()
	if err != nil {
		return err
	}
	load := e.command("import", "-", tag)
	load.Stdin = out
	if err := tar.Start(); err != nil {
		return err
	}
	return errors.Join(e.cache.run(ctx, load, "image"), tar.Wait())
}

// save writes an image to a file in the format of docker save, compressed, under the name tag: podman calls what it
// built localhost/NAME.
func (e *engine) save(ctx context.Context, built, tag, file string) error {
	raw := file + ".new"
	if err := os.RemoveAll(raw); err != nil {
		return err
	}
	defer os.RemoveAll(raw)
	if err := e.cache.run(ctx, e.command("save", "--output", raw, built), "image"); err != nil {
		return err
	}
	image, err := tarball.ImageFromPath(raw, nil)
	if err != nil {
		return err
	}
	ref, err := name.NewTag(tag)
	if err != nil {
		return err
	}
	return tarball.WriteToFile(file, ref, image)
}

// forget removes what earlier builds left. What docker keeps belongs to its owner.
func (e *engine) forget(ctx context.Context) error {
	if e.podman == nil {
		return nil
	}
	return e.cache.run(ctx, e.command("image", "prune", "--force", "--filter", "until=24h"), "image")
}

// build makes an image of the tree dir with the Dockerfile there, or with one given as text.
func (e *engine) build(ctx context.Context, tag, dir, dockerfile string, args ...string) error {
	all := []string{"build", "--network", "host", "--tag", tag}
	if e.podman != nil {
		all = append(all, "--isolation", "chroot", "--pull=never", "--format", "docker")
	}
	if dockerfile != "" {
		file, err := os.CreateTemp("", "Dockerfile")
		if err != nil {
			return err
		}
		defer os.Remove(file.Name())
		if _, err := file.WriteString(dockerfile); err != nil {
			return err
		}
		if err := file.Close(); err != nil {
			return err
		}
		all = append(all, "--file", file.Name())
	}
	return e.cache.run(ctx, e.command(append(append(all, args...), dir)...), "image")
}
