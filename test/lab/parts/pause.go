package parts

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"os"
	"os/signal"
	"path"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"htc.cern.ch/htcd/test/lab"
	"htc.cern.ch/htcd/test/lab/root"
)

// The images of a node's pods, under the host that stands for no registry.
const (
	pauseImage = "localhost/pause:lab"
	htcdImage  = "localhost/htcd:dev"
)

// Pause is the program that holds a pod's namespaces. It is this program, called with "pause".
func Pause() {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM, syscall.SIGINT)
	<-end
}

// LoadImages gives containerd the image of htcd, and one of this program to hold pods' namespaces.
func LoadImages(ctx context.Context, w World) error {
	htcd, err := tarball.ImageFromPath(OperatorArchive(w.Lab), nil)
	if err != nil {
		return err
	}
	if err := load(ctx, w, htcdImage, htcd); err != nil {
		return err
	}
	pause, err := imageOf(w.Lab.Bin("lab"), "/lab", "pause")
	if err != nil {
		return err
	}
	return load(ctx, w, pauseImage, pause)
}

// OperatorArchive is the file of htcd's image.
func OperatorArchive(l *lab.Lab) string { return l.Path("htcd-image.tar") }

func load(ctx context.Context, w World, tag string, image v1.Image) error {
	ref, err := name.NewTag(tag)
	if err != nil {
		return err
	}
	file := w.Lab.Path("node", "image.tar")
	if err := tarball.WriteToFile(file, ref, image); err != nil {
		return err
	}
	if _, err := ctr(ctx, "images", "import", file); err != nil {
		return err
	}
	return os.Remove(file)
}

// LoadProgram gives containerd an image that contains only a program, called as a file with arguments.
func LoadProgram(ctx context.Context, l *lab.Lab, tag, program, as string) error {
	image, err := imageOf(program, as)
	if err != nil {
		return err
	}
	ref, err := name.NewTag(tag)
	if err != nil {
		return err
	}
	file := l.Path("node", filepath.Base(program)+".tar")
	if err := tarball.WriteToFile(file, ref, image); err != nil {
		return err
	}
	defer os.Remove(file)
	_, err = l.RunAs(
		ctx,
		"root",
		root.ContainerdDir+"/ctr",
		"--address",
		containerdSocket,
		"--namespace",
		"k8s.io",
		"images",
		"import",
		file,
	)
	return err
}

// imageOf makes an image that contains only the program, called as a file with arguments.
func imageOf(program, as string, args ...string) (v1.Image, error) {
	layer, err := fileLayer(program, as)
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", runtime.GOARCH
	config.Config.Entrypoint = append([]string{as}, args...)
	config.Config.Env = []string{"PATH=" + path.Dir(as)}
	config.Config.User = "65535:65535"
	return mutate.ConfigFile(image, config)
}

// fileLayer is a layer of one program, and a place for files.
func fileLayer(file, as string) (v1.Layer, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var tree bytes.Buffer
	out := tar.NewWriter(&tree)
	if err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "/tmp", Mode: 0o1777}); err != nil {
		return nil, err
	}
	if err := out.WriteHeader(&tar.Header{Name: as, Mode: 0o755, Size: int64(len(text))}); err != nil {
		return nil, err
	}
	if _, err := out.Write(text); err != nil {
		return nil, err
	}
	if err := out.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(
		func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(tree.Bytes())), nil },
	)
}

// TagImage gives htcd's image another name, as if it were another one.
func TagImage(ctx context.Context, l *lab.Lab, tag string) error {
	_, err := l.RunAs(
		ctx,
		"root",
		root.ContainerdDir+"/ctr",
		"--address",
		containerdSocket,
		"--namespace",
		"k8s.io",
		"images",
		"tag",
		"--force",
		htcdImage,
		tag,
	)
	return err
}
