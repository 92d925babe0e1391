package convert

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// Limits of ConfigMaps: the apiserver's for one, and htcd's for all of an HTCJob.
const (
	maxFile    = 1 << 20
	maxBundle  = 1 << 20
	maxBundles = 16 << 20
)

// bundler packs files into ConfigMaps.
type bundler struct {
	env   Env
	packs []*pack
	at    map[string]*place // by the files' paths here
	total int64
}

// pack is what becomes one ConfigMap.
type pack struct {
	keys  []string
	files map[string][]byte
	again map[string]int // how many files after the first would have this key
	size  int64
	refs  []*v1alpha1.KeyRef // that need its name
}

func newPack() *pack { return &pack{files: map[string][]byte{}, again: map[string]int{}} }

// place is where a file has got to.
type place struct {
	pack *pack
	key  string
	err  error
}

// noRoom says why a file is in no ConfigMap.
type noRoom string

func (n noRoom) Error() string { return string(n) }

func newBundler(env Env) *bundler { return &bundler{env: env, at: map[string]*place{}} }

// file packs a file of this machine, once.
func (b *bundler) file(source string) (*v1alpha1.KeyRef, error) {
	p, known := b.at[source]
	if !known {
		p = &place{}
		p.err = b.read(p, source)
		b.at[source] = p
	}
	if p.err != nil {
		return nil, p.err
	}
	return p.ref(), nil
}

func (p *place) ref() *v1alpha1.KeyRef {
	ref := &v1alpha1.KeyRef{Key: p.key}
	p.pack.refs = append(p.pack.refs, ref)
	return ref
}

// files packs files of this machine into one ConfigMap, and returns their keys and a reference to it.
func (b *bundler) files(sources []string) (keys map[string]string, ref *v1alpha1.KeyRef, err error) {
	p, keys := newPack(), map[string]string{}
	b.packs = append(b.packs, p)
	for _, source := range sources {
		if keys[source] != "" {
			continue
		}
		at := &place{}
		if err := b.read(at, source); err != nil {
			return nil, nil, err
		}
		keys[source] = at.key
	}
	ref = &v1alpha1.KeyRef{}
	p.refs = append(p.refs, ref)
	return keys, ref, nil
}

func (b *bundler) read(p *place, source string) error {
	n, err := b.env.Size(source)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("there is no " + source)
	case err != nil:
		return err
	case n > maxFile:
		return noRoom(fmt.Sprintf("%s has %d bytes, and a ConfigMap holds 1 MiB", source, n))
	case b.total+n > maxBundles:
		return noRoom("the files have more than 16 MiB together")
	}
	content, err := b.env.ReadFile(source)
	if err != nil {
		return err
	}
	return b.add(p, path.Base(source), content)
}

var notKey = regexp.MustCompile(`[^-._a-zA-Z0-9]+`)

// add packs a content under a key like this name.
func (b *bundler) add(p *place, name string, content []byte) error {
	n := int64(len(content))
	if n > maxFile || b.total+n > maxBundles {
		return errors.New("it is more than a ConfigMap holds")
	}
	if len(b.packs) == 0 || b.packs[len(b.packs)-1].size+n > maxBundle {
		b.packs = append(b.packs, newPack())
	}
	p.pack = b.packs[len(b.packs)-1]
	stem := notKey.ReplaceAllString(name, "_")
	stem = stem[:min(len(stem), 200)]
	p.key = stem
	for p.pack.files[p.key] != nil || p.key == "" || p.key == "." || p.key == ".." {
		p.pack.again[stem]++
		p.key = fmt.Sprintf("%s.%d", stem, p.pack.again[stem]+1)
	}
	if content == nil {
		content = []byte{}
	}
	p.pack.keys = append(p.pack.keys, p.key)
	p.pack.files[p.key] = content
	p.pack.size += n
	b.total += n
	return nil
}

// configMaps returns the ConfigMaps, whose names follow from what they hold: other content is another HTCJob.
func (b *bundler) configMaps(owner string) []corev1.ConfigMap {
	var all []corev1.ConfigMap
	for _, p := range b.packs {
		if len(p.refs) == 0 {
			continue
		}
		immutable, digest := true, sha256.New()
		m := corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, Immutable: &immutable}
		for _, key := range p.keys {
			content := p.files[key]
			fmt.Fprintf(digest, "%q %x ", key, sha256.Sum256(content))
			if utf8.Valid(content) {
				if m.Data == nil {
					m.Data = map[string]string{}
				}
				m.Data[key] = string(content)
				continue
			}
			if m.BinaryData == nil {
				m.BinaryData = map[string][]byte{}
			}
			m.BinaryData[key] = content
		}
		m.Name = fmt.Sprintf("%s-inputs-%x", owner, digest.Sum(nil)[:5])
		for _, ref := range p.refs {
			ref.Name = m.Name
		}
		all = append(all, m)
	}
	return all
}
