package parts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"htc.cern.ch/htcd/test/lab/root"
)

// Registry serves the images that jobs name. It is this program, called with "registry".
func Registry(w World) *Process {
	url := fmt.Sprintf("http://127.0.0.1:%d/ready", w.Ports.Registry)
	return &Process{
		Name: "registry", Log: w.Lab.Log("registry"), Port: w.Ports.Registry,
		Args:  []string{w.Lab.Bin("lab"), "registry", fmt.Sprint(w.Ports.Registry)},
		Ready: httpReady(url, ""),
	}
}

// The account by which everything in the registry can be read below private/, or as localhost, where everything needs
// it: programs that fetch images show a login only to a registry that asks for it at once.
const (
	RegistryUser     = "reader"
	RegistryPassword = "reader's own"
)

// ServeRegistry is the registry's program. It fills itself with an image for each layer found, and then reports that it
// is ready.
func ServeRegistry(port string) error {
	address := "127.0.0.1:" + port
	ready := make(chan struct{})
	mux := http.NewServeMux()
	images := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	mux.Handle("/", images)
	loggedIn := func(rw http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != RegistryUser || password != RegistryPassword {
			rw.Header().Set("WWW-Authenticate", `Basic realm="the lab's registry"`)
			rw.WriteHeader(http.StatusUnauthorized)
			return
		}
		images.ServeHTTP(rw, r)
	}
	mux.HandleFunc("localhost/", loggedIn)
	mux.HandleFunc("/v2/private/", func(rw http.ResponseWriter, r *http.Request) {
		r.URL.Path = "/v2/" + strings.TrimPrefix(r.URL.Path, "/v2/private/")
		loggedIn(rw, r)
	})
	mux.HandleFunc("/ready", func(rw http.ResponseWriter, _ *http.Request) {
		select {
		case <-ready:
		default:
			http.Error(rw, "images are still being added", http.StatusServiceUnavailable)
		}
	})
	served := make(chan error, 1)
	go func() { served <- http.ListenAndServe(address, mux) }()
	pushed := make(chan error, 1)
	go func() { pushed <- pushAll(address) }()
	for {
		select {
		case err := <-served:
			return err
		case err := <-pushed:
			if err != nil {
				return err
			}
			close(ready)
			pushed = nil
		}
	}
}

func pushAll(address string) error {
	images, err := os.ReadDir(root.ImagesDir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, image := range images {
		layers, err := filepath.Glob(filepath.Join(root.ImagesDir, image.Name(), "*.tar.gz"))
		if err != nil {
			return err
		}
		for _, layer := range layers {
			if err := push(address, image.Name(), layer); err != nil {
				return fmt.Errorf("push %s: %w", image.Name(), err)
			}
		}
	}
	return nil
}

func push(address, image, file string) error {
	ref, err := name.NewTag(address+"/"+image+":latest", name.Insecure)
	if err != nil {
		return err
	}
	layer, err := tarball.LayerFromFile(file)
	if err != nil {
		return err
	}
	made, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return err
	}
	config, err := made.ConfigFile()
	if err != nil {
		return err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", runtime.GOARCH
	config.Config.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	if made, err = mutate.ConfigFile(made, config); err != nil {
		return err
	}
	return remote.Write(ref, made, remote.WithContext(context.Background()))
}
