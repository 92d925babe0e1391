package submit

import (
	"archive/tar"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// archive writes a tar of these files; a name that ends in / is a directory.
func archive(t *testing.T, path string, headers ...tar.Header) {
	t.Helper()
	f, err := os.Create(path)
	require.NoError(t, err)
	defer f.Close()
	w := tar.NewWriter(f)
	for _, h := range headers {
		content := []byte(h.Name)
		if h.Typeflag != tar.TypeReg {
			content = nil
		}
		h.Size = int64(len(content))
		require.NoError(t, w.WriteHeader(&h))
		_, err := w.Write(content)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
}

func unpacking(t *testing.T, source string, headers ...tar.Header) scratch {
	d := description()
	d.CallbackURL, d.Command, d.Source = "", "sh", source
	d.Inputs = []Input{{Name: "maps", Unpack: UnpackDirectory}, {Name: "keys.tar", Unpack: UnpackHere}}
	tools := map[string]string{"apptainer": fakeApptainer}
	for _, tool := range []string{"sh", "tar", "gzip", "find", "ln", "stat", "ls", "touch"} {
		tools[tool] = ""
	}
	s := node(t, d, tools)
	for _, name := range []string{"maps", "keys.tar"} {
		archive(t, filepath.Join(s.dir, name), headers...)
	}
	return s
}

func TestArchivesAreUnpackedBeforeTheScriptStarts(t *testing.T) {
	for shell, argv := range shells(t) {
		t.Run(shell, func(t *testing.T) {
			s := unpacking(t, "set -e; cat 'a b' maps/in/c; echo; ls -1 maps; echo changed >changed; echo new >new\n",
				tar.Header{Typeflag: tar.TypeReg, Name: "a b", Mode: 0o644},
				tar.Header{Typeflag: tar.TypeReg, Name: "changed", Mode: 0o644},
				tar.Header{Typeflag: tar.TypeReg, Name: "script", Mode: 0o644},
				tar.Header{Typeflag: tar.TypeReg, Name: "late", Mode: 0o644, ModTime: time.Now().Add(time.Hour)},
				tar.Header{Typeflag: tar.TypeDir, Name: "in/", Mode: 0o000},
				tar.Header{Typeflag: tar.TypeReg, Name: "in/c", Mode: 0o000},
			)
			s.shell = argv
			code, stdout, stderr := s.run(t)
			require.Equal(t, 0, code, stderr)
			require.Equal(t, "a bin/c\na b\nchanged\nin\nlate\nscript\n", stdout)
			require.FileExists(t, filepath.Join(s.dir, "new"))
			require.FileExists(t, filepath.Join(s.dir, "changed"))
			for _, name := range []string{"a b", "late", "maps", "keys.tar", "in"} {
				require.NoFileExists(t, filepath.Join(s.dir, name), "HTCondor would bring it back")
				require.NoDirExists(t, filepath.Join(s.dir, name))
			}
		})
	}
}

func TestAnArchiveReachesNothingOutside(t *testing.T) {
	for name, h := range map[string]tar.Header{
		"a link":                {Typeflag: tar.TypeSymlink, Name: "l", Linkname: "/etc"},
		"another name":          {Typeflag: tar.TypeLink, Name: "l", Linkname: "../../token"},
		"a FIFO":                {Typeflag: tar.TypeFifo, Name: "l"},
		"a path through ..":     {Typeflag: tar.TypeReg, Name: "../../outside", Mode: 0o644},
		"a .. of a directory":   {Typeflag: tar.TypeReg, Name: "in/../../../outside", Mode: 0o644},
		"a link among the dirs": {Typeflag: tar.TypeSymlink, Name: "in/l", Linkname: ".."},
	} {
		t.Run(name, func(t *testing.T) {
			s := unpacking(t, "echo ran\n", h)
			code, stdout, stderr := s.run(t)
			require.Equal(t, 125, code)
			require.Empty(t, stdout)
			require.Contains(t, stderr, "htcd: the archive of the input maps ")
			require.NoFileExists(t, filepath.Join(s.dir, "outside"))
			require.NoFileExists(t, filepath.Join(s.dir, ".htcd/outside"))
		})
	}
	s := unpacking(t, "echo ran\n", tar.Header{Typeflag: tar.TypeReg, Name: "/a", Mode: 0o644})
	code, stdout, stderr := s.run(t)
	require.Equal(t, 0, code, stderr)
	require.Equal(t, "ran\n", stdout, "the first slash is dropped")
}

func TestAnInputThatCannotBeBesideWhatIsInAnArchiveEndsTheJobInWords(t *testing.T) {
	s := unpacking(t, "echo ran\n", tar.Header{Typeflag: tar.TypeDir, Name: "cuts/", Mode: 0o755})
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "cuts"), []byte("50"), 0o600))
	code, stdout, stderr := s.run(t)
	require.Equal(t, 125, code)
	require.Empty(t, stdout)
	require.Contains(t, stderr, "htcd: an archive among the inputs has something else that is called like another input")
}

func TestWhatIsNoArchiveEndsTheJobInWords(t *testing.T) {
	s := unpacking(t, "echo ran\n")
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "maps"), []byte("no archive"), 0o600))
	code, stdout, stderr := s.run(t)
	require.Equal(t, 125, code)
	require.Empty(t, stdout)
	require.Contains(t, stderr, "htcd: the archive of the input maps could not be unpacked")
}
