package secrets

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// The keys of a Secret that are looked for as files, and how large they may be.
var directoryKeys = []string{"username", "password", "keytab", "token"}

const maxKey = 1 << 20

// betweenLooks is how often the files are read.
const betweenLooks = time.Second

// ReadDirectory reads the files that hold an account, as a Secret's data; a missing one is left out. A line end that
// ends a username is an editor's.
func ReadDirectory(path string) (map[string][]byte, error) {
	data := map[string][]byte{}
	for _, key := range directoryKeys {
		file, err := os.Open(filepath.Join(path, key)) // #nosec G304 -- the administrator names the directory
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		content, err := io.ReadAll(io.LimitReader(file, maxKey+1))
		_ = file.Close() // it was only read
		if err != nil {
			return nil, err
		}
		if len(content) > maxKey {
			return nil, errors.New(file.Name() + " is too large for a credential")
		}
		data[key] = content
	}
	return data, nil
}

// directory is a Secret in files, which something else keeps up to date. It may write them one after the other, so they
// are taken over when they are the same at two looks.
type directory struct {
	path string

	mu     sync.Mutex
	secret Secret
	seen   map[string][]byte
}

func newDirectory(path string) *directory {
	return &directory{path: path, secret: Secret{Name: strings.TrimPrefix(path, "/"), State: Unread}}
}

func (d *directory) current() Secret {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.secret
}

// look reads the files, and reports whether there is a new Secret. While they cannot be read the last one stays.
func (d *directory) look() (changed bool) {
	data, err := ReadDirectory(d.path)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		return false
	}
	settled := d.seen != nil && maps.EqualFunc(data, d.seen, bytes.Equal)
	d.seen = data
	state := Present
	if len(data) == 0 {
		state = Missing
	}
	if !settled || d.secret.State == state && maps.EqualFunc(data, d.secret.Data, bytes.Equal) {
		return false
	}
	d.secret.State, d.secret.Data = state, data
	return true
}

// run looks until ctx ends.
func (d *directory) run(ctx context.Context, changed func()) {
	wait.NonSlidingUntilWithContext(ctx, func(context.Context) {
		if d.look() {
			changed()
		}
	}, betweenLooks)
}
