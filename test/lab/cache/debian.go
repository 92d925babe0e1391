package cache

import (
	"context"
	_ "embed"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed debian.sh
var debianScript string

//go:embed debian-root.sh
var debianRootScript string

// DefaultCondor is the HTCondor of a lab that asks for none.
const DefaultCondor = "23"

// condorSuites lists Debian's releases by the major version of the HTCondor in them.
var condorSuites = map[string]string{"23": "trixie", "25": "forky"}

// CondorVersion returns the requested major version of HTCondor, or the default.
func CondorVersion(asked string) (string, error) {
	if asked == "" {
		return DefaultCondor, nil
	}
	if _, ok := condorSuites[asked]; !ok {
		return "", fmt.Errorf(
			"CONDOR=%s: a lab has HTCondor %s",
			asked,
			strings.Join(slices.Sorted(maps.Keys(condorSuites)), " or "),
		)
	}
	return asked, nil
}

// DebianRoot returns the directory of a Debian root with that HTCondor, apptainer, a KDC and etcd.
func (c *Cache) DebianRoot(ctx context.Context, condor string) (string, error) {
	suite := condorSuites[condor]
	return c.artifact(
		ctx,
		"debian-"+suite,
		debianScript+debianRootScript+suite+condor,
		func(ctx context.Context, dir string) error {
			if err := c.HostPackages(ctx); err != nil {
				return err
			}
			mirror, err := debianMirror("/etc/apt", os.Getenv("HTCD_DEBIAN_MIRROR"))
			if err != nil {
				return err
			}
			cmd := exec.Command(
				"/bin/sh",
				"-c",
				debianScript+debianRootScript,
				"debian-root",
				dir,
				suite,
				condor,
				mirror,
				debianKeyring,
			)
			return c.run(ctx, namespaced(cmd), "debian")
		},
	)
}

const debianKeyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

// HostPackages installs what the host lacks: debootstrap for the lab, curl and wget, which the wrapper's unit tests
// run, shellcheck for make lint, and python3 for the unit tests of clients/python. Nothing else on the host is changed.
func (c *Cache) HostPackages(ctx context.Context) error {
	var missing []string
	for _, program := range []string{"debootstrap", "curl", "wget", "shellcheck", "python3"} {
		if _, err := exec.LookPath(program); err != nil {
			missing = append(missing, program)
		}
	}
	if _, err := os.Stat(debianKeyring); err != nil {
		missing = append(missing, "debian-archive-keyring")
	}
	if len(missing) == 0 {
		return nil
	}
	return c.install(ctx, missing...)
}

// install installs Debian packages on the host.
func (c *Cache) install(ctx context.Context, packages ...string) error {
	c.Log("host: apt-get install %v", packages)
	install := append([]string{"install", "-y", "--no-install-recommends"}, packages...)
	if c.run(ctx, exec.Command("apt-get", install...), "host") == nil {
		return nil
	}
	c.Log("host: apt-get update")
	if err := c.run(ctx, exec.Command("apt-get", "update"), "host"); err != nil {
		return err
	}
	return c.run(ctx, exec.Command("apt-get", install...), "host")
}

//go:embed image.sh
var imageScript string

// Images lists the packages of each image that can be built.
var Images = map[string][]string{
	"centos": {"bash", "coreutils", "grep", "sed", "gawk", "findutils", "tar", "gzip", "hostname"},
	"python": {"bash", "coreutils", "python3", "python-is-python3"},
	"r-base": {"bash", "coreutils", "r-base-core"},
	// A notebook of docs/python.md, in test/e2e.
	"notebook": {"bash", "coreutils", "python3", "python3-kubernetes", "python3-cloudpickle"},
	// The same with Dask, and its workers, in test/e2e, with the tag dask.
	"dask": {"bash", "coreutils", "python3", "python3-kubernetes", "python3-cloudpickle", "python3-distributed",
		"python3-cryptography"},
	// The notebook server of test/ui, with the tag jupyter.
	"jupyter": {"bash", "coreutils", "python3", "jupyter-notebook"},
	// The jobs of several nodes of test/e2e.
	"openmpi": {"bash", "coreutils", "openmpi-bin", "python3-mpi4py"},
	// test/e2e also uses it as a user's snakemake.
	"snakemake": {"bash", "coreutils", "snakemake"},
	// A VOMS server, its database and its clients, in test/e2e.
	"voms": {"bash", "coreutils", "voms-server", "voms-mysql-plugin", "mariadb-server-core", "voms-clients"},
}

// Image returns the file of an image's only layer, a gzipped tar.
func (c *Cache) Image(ctx context.Context, root, name string, packages []string) (string, error) {
	recipe := imageScript + root
	for _, p := range packages {
		recipe += " " + p
	}
	dir, err := c.artifact(ctx, "image-"+name, recipe, func(ctx context.Context, dir string) error {
		args := append([]string{"-c", imageScript, "image", root, filepath.Join(dir, layerFile)}, packages...)
		return c.run(ctx, namespaced(exec.Command("/bin/sh", args...)), "image-"+name)
	})
	return filepath.Join(dir, layerFile), err
}

const layerFile = "layer.tar.gz"
