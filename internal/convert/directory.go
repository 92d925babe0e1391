package convert

import (
	"path"
	"slices"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// directories adds the directories that all jobs have and that are uploaded as archives. Of the others, the jobs want
// the files.
func (a *assembly) directories() {
	var all []wanted
	jobs := map[wanted]int{} // that want it
	for _, p := range a.g.parts {
		for i, w := range p.inputs {
			if !w.isDir || slices.Contains(p.inputs[:i], w) {
				continue
			}
			if jobs[w]++; jobs[w] == 1 {
				all = append(all, w)
			}
		}
	}
	if len(all) == 0 {
		return
	}
	for i, p := range a.g.parts {
		var inputs []wanted
		for _, w := range p.inputs {
			switch {
			case !w.isDir:
				inputs = append(inputs, w)
			case jobs[w] < len(a.g.parts):
				files, _, _ := a.c.listed(w.source)
				inputs = append(inputs, singly(w, files)...)
			}
		}
		a.g.parts[i].inputs = inputs
	}
	for _, w := range all {
		if jobs[w] < len(a.g.parts) {
			continue
		}
		if err := a.directory(w); err != nil {
			a.lose(err.Error(), "directories of files", "transfer_input_files")
		}
	}
}

func (a *assembly) directory(w wanted) error {
	words := "the directory " + w.source + " is uploaded as an archive"
	in, err := a.upload(w.source, words, "transfer_input_files")
	switch {
	case err != nil:
		return err
	case w.target == "":
		in.Unpack = v1alpha1.UnpackHere
		a.input(in, path.Base(w.source)+".tar.gz")
		return nil
	}
	in.Unpack = v1alpha1.UnpackDirectory
	a.put(quote(a.input(in, w.target)), w.target)
	return nil
}
