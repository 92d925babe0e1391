package plugin

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/cli/setting"
)

// input is a file of --input.
type input struct {
	name    string // in the script's directory, and the key of the ConfigMap
	content []byte
}

// maxInputs is the greatest content of a ConfigMap in Kubernetes, of all keys together.
const maxInputs = 1 << 20

// inputRE matches what can be the name of an input and the key of a ConfigMap. Names that htcd uses are refused by the
// apiserver.
var inputRE = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)

// largeInput is a file of --input that is uploaded.
type largeInput struct {
	name   string
	unpack v1alpha1.Unpacking // of a directory
	toUpload
}

// readInputs reads the files of arguments FILE and NAME=FILE. Directories are to be uploaded; DIRECTORY/ means what is
// in one. Of the files the largest are to be uploaded, until the others fit into one ConfigMap. Nothing is returned
// unless all of them can be read.
func readInputs(arguments []string) (files []input, large []largeInput, err error) {
	var all []largeInput
	paths := map[string]string{}
	total := int64(0)
	for _, argument := range arguments {
		name, path, both := strings.Cut(argument, "=")
		if !both {
			name, path = filepath.Base(argument), argument
		}
		if path == "" {
			return nil, nil, setting.Usage{Err: fmt.Errorf("--input %q: want FILE, or NAME=FILE", argument)}
		}
		info, err := os.Stat(path)
		isDir := err == nil && info.IsDir()
		unpack := v1alpha1.Unpacking("")
		switch {
		case isDir && !both && strings.HasSuffix(path, "/"):
			name, unpack = cmp.Or(strings.TrimLeft(name, "."), "files")+".tar.gz", v1alpha1.UnpackHere
		case isDir:
			unpack = v1alpha1.UnpackDirectory
		}
		if !inputRE.MatchString(name) {
			return nil, nil, setting.Usage{
				Err: fmt.Errorf(
					"--input %q: %q cannot be the name of an input: want at most 128 letters, digits and _ . -, the first a letter, a digit or _; write NAME=FILE",
					argument,
					name,
				),
			}
		}
		if other, twice := paths[name]; twice {
			return nil, nil, setting.Usage{
				Err: fmt.Errorf("--input: %s and %s would both be called %s: write NAME=FILE", other, path, name),
			}
		}
		paths[name] = path
		if isDir {
			directory, err := packed(path)
			if err != nil {
				return nil, nil, fmt.Errorf("--input: %w", err)
			}
			large = append(large, largeInput{name, unpack, directory})
			continue
		}
		size := int64(0)
		if err == nil && info.Mode().IsRegular() {
			size = info.Size()
		}
		total += size
		all = append(all, largeInput{name: name, toUpload: toUpload{path: path, size: size}})
	}
	bySize := slices.SortedStableFunc(
		slices.Values(all),
		func(a, b largeInput) int { return cmp.Compare(b.size, a.size) },
	)
	for _, f := range bySize {
		if total <= maxInputs {
			break
		}
		total -= f.size
		if f.toUpload, err = fileToUpload(f.path); err != nil {
			return nil, nil, fmt.Errorf("--input: %w", err)
		}
		large = append(large, f)
	}
	left := int64(maxInputs)
	for _, f := range all {
		if slices.ContainsFunc(large, func(l largeInput) bool { return l.name == f.name }) {
			continue
		}
		content, err := readFile(f.path, left)
		switch {
		case errors.Is(err, errTooLarge):
			return nil, nil, fmt.Errorf(
				"--input %s: it has more than 1 MiB, which is what a ConfigMap can hold, and is no regular file that could be uploaded",
				f.path,
			)
		case err != nil:
			return nil, nil, fmt.Errorf("--input: %w", err)
		}
		left -= int64(len(content))
		files = append(files, input{name: f.name, content: content})
	}
	return files, large, nil
}

var errTooLarge = errors.New("too large")

// readFile returns a file's content, or errTooLarge.
func readFile(path string, most int64) ([]byte, error) {
	file, err := os.Open(path) // #nosec G304 -- the user's own
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readAtMost(file, most)
}

func readAtMost(from io.Reader, most int64) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(from, most+1))
	if err == nil && int64(len(content)) > most {
		return nil, errTooLarge
	}
	return content, err
}

// bundle returns the ConfigMap of files for the HTCJob of a manifest, and the manifest with its inputs. The name of the
// ConfigMap follows from the files: the same files again are the same HTCJob, and others are another attempt. An HTCJob
// whose name the apiserver makes has a ConfigMap that no other has.
func bundle(m manifest, files []input) (*corev1.ConfigMap, manifest, error) {
	owner, digest := m.Metadata.Name, sha256.New()
	if owner == "" {
		owner = m.Metadata.GenerateName
		fmt.Fprintf(digest, "%s ", rand.Text())
	}
	immutable := true
	configMap := &corev1.ConfigMap{Immutable: &immutable, Data: map[string]string{}, BinaryData: map[string][]byte{}}
	fmt.Fprintf(digest, "%q", owner)
	for _, f := range files {
		fmt.Fprintf(digest, " %q %x", f.name, sha256.Sum256(f.content))
		if utf8.Valid(f.content) {
			configMap.Data[f.name] = string(f.content)
		} else {
			configMap.BinaryData[f.name] = f.content
		}
	}
	configMap.Name = bundlePrefix(owner) + fmt.Sprintf("%x", digest.Sum(nil)[:5])
	var inputs []v1alpha1.Input
	for _, f := range files {
		inputs = append(
			inputs,
			v1alpha1.Input{Name: f.name, ConfigMapKeyRef: &v1alpha1.KeyRef{Name: configMap.Name, Key: f.name}},
		)
	}
	text, err := addInputs(m.text, inputs)
	m.text = text
	return configMap, m, err
}

// bundlePrefix begins the names of the ConfigMaps for an HTCJob: names of Kubernetes have at most 253 letters.
func bundlePrefix(owner string) string {
	return strings.TrimRight(owner[:min(len(owner), 230)], "-.") + "-inputs-"
}

// addInputs adds to spec.inputs of an object in JSON, and leaves everything else as it is written.
func addInputs(text []byte, more []v1alpha1.Input) ([]byte, error) {
	var object, spec map[string]json.RawMessage
	var list []json.RawMessage
	if err := json.Unmarshal(text, &object); err != nil {
		return nil, err
	}
	if err := unmarshalIn(object, "spec", &spec); err != nil {
		return nil, err
	}
	if err := unmarshalIn(spec, "inputs", &list); err != nil {
		return nil, err
	}
	for _, in := range more {
		for _, other := range list {
			var has struct{ Name string }
			if json.Unmarshal(other, &has) == nil && has.Name == in.Name {
				return nil, setting.Usage{
					Err: fmt.Errorf(
						"--input: the HTCJob has an input %s already: write NAME=FILE with another name, or take it out of spec.inputs",
						in.Name,
					),
				}
			}
		}
	}
	for _, in := range more {
		text, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		list = append(list, text)
	}
	var err error
	if spec == nil {
		spec = map[string]json.RawMessage{}
	}
	if spec["inputs"], err = json.Marshal(list); err != nil {
		return nil, err
	}
	if object["spec"], err = json.Marshal(spec); err != nil {
		return nil, err
	}
	return json.Marshal(object)
}

// unmarshalIn reads a field that may be missing.
func unmarshalIn(object map[string]json.RawMessage, field string, into any) error {
	text, is := object[field]
	if !is {
		return nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return setting.Usage{Err: fmt.Errorf("%s of the HTCJob: %w", field, err)}
	}
	return nil
}

// ownedBy reports whether a ConfigMap belongs to this object, or to an earlier one of its name.
func ownedBy(configMap metav1.Object, of *object) (this, earlier bool) {
	for _, owner := range configMap.GetOwnerReferences() {
		if owner.Kind != of.name || owner.Name != of.Name {
			continue
		}
		this = this || owner.UID == of.UID
		earlier = earlier || owner.UID != of.UID
	}
	return this, earlier
}
