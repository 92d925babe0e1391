//go:build node

package node

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/test/lab"
	"htc.cern.ch/htcd/test/lab/parts"
	"htc.cern.ch/htcd/test/lab/sbom"
)

// archive returns the file of the image that the lab runs.
func archive(t *testing.T) string {
	t.Helper()
	running, err := lab.Find()
	require.NoError(t, err)
	return parts.OperatorArchive(running)
}

// unpack returns a directory with the image's files, and the programs among them.
func unpack(t *testing.T) (root string, programs []string) {
	t.Helper()
	image, err := tarball.ImageFromPath(archive(t), nil)
	require.NoError(t, err)
	root = t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(root), 0o755))
	tree := mutate.Extract(image)
	defer tree.Close()
	for files := tar.NewReader(tree); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return root, programs
		}
		require.NoError(t, err)
		name := path.Clean("/" + header.Name)
		to := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755))
		switch header.Typeflag {
		case tar.TypeDir:
			require.NoError(t, os.MkdirAll(to, 0o755))
			require.NoError(t, os.Chmod(to, header.FileInfo().Mode()))
		case tar.TypeSymlink:
			require.NoError(t, os.Symlink(header.Linkname, to))
		case tar.TypeReg:
			require.Zero(t, header.FileInfo().Mode()&(os.ModeSetuid|os.ModeSetgid), "%s gives rights away", name)
			require.Zero(t, header.FileInfo().Mode()&0o022, "%s may be written by others", name)
			text, err := io.ReadAll(files)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(to, text, header.FileInfo().Mode()))
			if header.Mode&0o111 != 0 && !strings.Contains(name, ".so") {
				programs = append(programs, name)
			}
		}
	}
}

// called returns the programs that htcd's sources name.
func called(t *testing.T) []string {
	t.Helper()
	name := regexp.MustCompile(`"(condor_[a-z_]+|kinit|klist|kdestroy)"`)
	var names []string
	for _, dir := range []string{"../../internal/schedd/*.go", "../../internal/schedd/krb/*.go", "../../internal/kube/job/*.go", "../../internal/daemon/*.go"} {
		files, err := filepath.Glob(dir)
		require.NoError(t, err)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, match := range name.FindAllStringSubmatch(string(text), -1) {
				names = append(names, match[1])
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func TestTheImageHoldsWhatHTCdCallsAndNoOtherProgram(t *testing.T) {
	t.Parallel()
	_, programs := unpack(t)
	wanted := []string{"/usr/bin/htcd"}
	for _, name := range called(t) {
		if name == "condor_config" { // a file
			continue
		}
		wanted = append(wanted, "/usr/bin/"+name)
	}
	require.ElementsMatch(t, wanted, programs)
}

func TestTheImageSaysWhatItIs(t *testing.T) {
	t.Parallel()
	image, err := tarball.ImageFromPath(archive(t), nil)
	require.NoError(t, err)
	file, err := image.ConfigFile()
	require.NoError(t, err)
	labels := file.Config.Labels
	for _, label := range []string{"title", "description", "licenses", "version", "revision", "created"} {
		require.NotEmpty(t, labels["org.opencontainers.image."+label], label)
	}
	require.Equal(t, "10001:10001", file.Config.User)
	require.Equal(t, []string{"/usr/bin/htcd"}, file.Config.Entrypoint)

	root, _ := unpack(t)
	require.Equal(
		t,
		"htcd "+labels["org.opencontainers.image.version"]+"\n",
		inside(t, root, "/usr/bin/htcd", "version"),
	)

	list, err := sbom.OfArchive(archive(t))
	require.NoError(t, err)
	t.Logf("%d MB, %d Go modules, %d Debian packages", list.Size>>20, len(list.Modules), len(list.Packages))
	require.LessOrEqual(t, list.Size>>20, int64(105))
	for _, name := range []string{"condor", "krb5-user", "libc6", "ca-certificates"} {
		require.True(
			t,
			slices.ContainsFunc(list.Packages, func(p sbom.Part) bool { return p.Name == name && p.Version != "" }),
			name,
		)
		require.FileExists(t, filepath.Join(root, "usr/share/doc", name, "copyright"))
	}
	require.True(t, slices.ContainsFunc(list.Modules, func(p sbom.Part) bool { return p.Name == "k8s.io/client-go" }))
}

// A cluster may choose any uid, so no passwd file can contain it.
func TestTheToolsRunAsAnyUser(t *testing.T) {
	t.Parallel()
	root, _ := unpack(t)
	require.NoFileExists(t, filepath.Join(root, "etc/passwd"))
	require.Contains(t, inside(t, root, "/usr/bin/condor_config_val", "-version"), "$CondorVersion: 23.9.")
	// A kubelet writes this file into every pod; without it condor_submit asks DNS for its own name for a minute.
	hostname, err := os.Hostname()
	require.NoError(t, err)
	require.NoError(
		t,
		os.WriteFile(filepath.Join(root, "etc", "hosts"), []byte("127.0.0.1 localhost "+hostname+"\n"), 0o644),
	)
	require.NoError(
		t,
		os.WriteFile(filepath.Join(root, "tmp", "job.sub"), []byte("executable = /usr/bin/kinit\nqueue 2\n"), 0o644),
	)
	require.Contains(t, inside(t, root, "/usr/bin/condor_submit", "-dry-run", "-", "/tmp/job.sub"), "2 job(s) dry-run")
	require.Contains(t, inside(t, root, "/usr/bin/kinit", "-c", "FILE:/tmp/cc", "somebody@NOWHERE"),
		`Cannot find KDC for realm "NOWHERE"`)
}

// inside runs a program in the image's root, with a uid without a passwd entry, and returns its output.
func inside(t *testing.T, root, program string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = "/"
	cmd.Env = []string{
		"PATH=/usr/bin",
		"CONDOR_CONFIG=ONLY_ENV",
		"_CONDOR_NO_DNS=True",
		"_CONDOR_DEFAULT_DOMAIN_NAME=example.org",
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Chroot:     root,
		Credential: &syscall.Credential{Uid: 1234567890, Gid: 1234567890},
	}
	out, err := cmd.CombinedOutput()
	if _, ended := errors.AsType[*exec.ExitError](err); !ended {
		require.NoError(t, err)
	}
	return string(out)
}
