package root

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// CgroupDir contains the cgroup hierarchies as subdirectories, or is itself the only one.
const CgroupDir = "/sys/fs/cgroup"

// hierarchies returns the directories in which a cgroup is made.
func hierarchies() ([]string, error) {
	if _, err := os.Stat(CgroupDir + "/cgroup.controllers"); err == nil {
		return []string{CgroupDir}, nil
	}
	entries, err := os.ReadDir(CgroupDir)
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, entry := range entries {
		if entry.IsDir() {
			dirs = append(dirs, filepath.Join(CgroupDir, entry.Name()))
		}
	}
	return dirs, nil
}

// MakeCgroup makes a cgroup of that name in every hierarchy.
func MakeCgroup(name string) error {
	dirs, err := hierarchies()
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		group := filepath.Join(dir, name)
		if err := os.Mkdir(group, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
		// A new group of this hierarchy has neither until they are set.
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			text, err := os.ReadFile(filepath.Join(dir, file))
			if errors.Is(err, os.ErrNotExist) {
				continue
			}
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(group, file), text, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// RemoveCgroup removes a cgroup without processes, and those below it.
func RemoveCgroup(name string) error {
	dirs, err := hierarchies()
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		var groups []string
		err := filepath.WalkDir(filepath.Join(dir, name), func(path string, entry fs.DirEntry, err error) error {
			if errors.Is(err, os.ErrNotExist) {
				return nil
			}
			if err == nil && entry.IsDir() {
				groups = append(groups, path)
			}
			return err
		})
		if err != nil {
			return err
		}
		for _, group := range slices.Backward(groups) {
			if err := removeSoon(group); err != nil {
				return err
			}
		}
	}
	return nil
}

// removeSoon allows for the moment between a process's end and its leaving the cgroup.
func removeSoon(group string) error {
	for tries := 0; ; tries++ {
		err := os.Remove(group)
		if err == nil || errors.Is(err, os.ErrNotExist) || tries == 50 {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}
