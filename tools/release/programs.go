package main

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// machines lists the architectures that an image can be for: what its programs say, and where they find libraries.
var machines = map[string]struct {
	elf    elf.Machine
	places []string
}{
	"amd64": {elf.EM_X86_64, []string{"usr/lib/x86_64-linux-gnu", "usr/lib", "usr/lib64"}},
	"arm64": {elf.EM_AARCH64, []string{"usr/lib/aarch64-linux-gnu", "usr/lib"}},
}

// checkPrograms reports every program and library that is for another architecture, or that needs one the image does
// not have. An image for another architecture than the builder's is never run before it is published.
func (t tree) checkPrograms(architecture string) error {
	machine, ok := machines[architecture]
	if !ok {
		return fmt.Errorf("an image for %s: only amd64 and arm64 are known", architecture)
	}
	var wrong []error
	found := 0
	for _, name := range slices.Sorted(maps.Keys(t)) {
		if !bytes.HasPrefix(t[name].text, []byte(elf.ELFMAG)) {
			continue
		}
		found++
		if err := t.checkProgram(name, machine.elf, machine.places); err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", name, err))
		}
	}
	if found == 0 {
		return errors.New("there is no program in the image")
	}
	return errors.Join(wrong...)
}

func (t tree) checkProgram(name string, machine elf.Machine, places []string) error {
	program, err := elf.NewFile(bytes.NewReader(t[name].text))
	if err != nil {
		return err
	}
	if program.Machine != machine {
		return fmt.Errorf("is for %v", program.Machine)
	}
	for _, segment := range program.Progs {
		if segment.Type != elf.PT_INTERP {
			continue
		}
		text := make([]byte, segment.Filesz)
		if _, err := segment.ReadAt(text, 0); err != nil {
			return err
		}
		if loader := string(bytes.TrimRight(text, "\x00")); !t.has(loader) {
			return fmt.Errorf("there is no %s", loader)
		}
	}
	needed, err := program.ImportedLibraries()
	if err != nil {
		return err
	}
	for _, tag := range []elf.DynTag{elf.DT_RUNPATH, elf.DT_RPATH} {
		own, err := program.DynString(tag)
		if err != nil {
			return err
		}
		for _, list := range own {
			places = append(strings.Split(strings.ReplaceAll(list, "$ORIGIN", path.Dir("/"+name)), ":"), places...)
		}
	}
	for _, library := range needed {
		if !slices.ContainsFunc(places, func(place string) bool { return t.has(path.Join(place, library)) }) {
			return fmt.Errorf("there is no %s in %s", library, strings.Join(places, ", "))
		}
	}
	return nil
}

// has reports whether there is a file of that name, or one that a link of a directory leads to: Debian's /lib is one.
func (t tree) has(name string) bool {
	name = strings.TrimPrefix(path.Clean("/"+name), "/")
	if first, rest, ok := strings.Cut(name, "/"); ok && t[first].link != "" {
		name = path.Join(t[first].link, rest)
	}
	_, ok := t[name]
	return ok
}
