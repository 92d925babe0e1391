package syncsecret

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// File is a file and the key of the Secret that holds its content.
type File struct{ Key, Path string }

// maxFiles is the largest content of a Secret in Kubernetes, of all keys together.
const maxFiles = 1 << 20

// Files reads arguments of the form FILE, whose key is the file's name, or KEY=FILE.
func Files(arguments []string) ([]File, error) {
	if len(arguments) == 0 {
		return nil, errors.New("want at least one FILE, or KEY=FILE")
	}
	var files []File
	keys := map[string]string{}
	for _, argument := range arguments {
		key, path, both := strings.Cut(argument, "=")
		if !both {
			key, path = filepath.Base(argument), argument
		}
		if path == "" {
			return nil, fmt.Errorf("%q: want FILE, or KEY=FILE", argument)
		}
		if wrong := validation.IsConfigMapKey(key); len(wrong) > 0 {
			return nil, fmt.Errorf(
				"%q: %q cannot be a key of a Secret: %s; write KEY=FILE",
				argument,
				key,
				strings.Join(wrong, "; "),
			)
		}
		if other, twice := keys[key]; twice {
			return nil, fmt.Errorf("%s and %s would have the same key %s: write KEY=FILE", other, path, key)
		}
		keys[key] = path
		files = append(files, File{Key: key, Path: path})
	}
	return files, nil
}

// read returns the contents by key. Nothing is returned unless all of them can be read.
func read(files []File) (map[string][]byte, error) {
	contents := map[string][]byte{}
	left := int64(maxFiles)
	for _, f := range files {
		content, err := readFile(f.Path, left)
		if err != nil {
			return nil, err
		}
		left -= int64(len(content))
		contents[f.Key] = content
	}
	return contents, nil
}

func readFile(path string, most int64) ([]byte, error) {
	f, err := os.Open(path) // #nosec G304 -- a file that the user names
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, most+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", path, err)
	case int64(len(content)) > most:
		return nil, fmt.Errorf("%s: a Secret holds at most 1 MiB, of all files together", path)
	case len(content) == 0:
		return nil, fmt.Errorf("%s is empty: its owner may be writing it", path)
	}
	return content, nil
}
