package cache

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDebianMirror(t *testing.T) {
	for name, c := range map[string]struct {
		files    map[string]string
		override string
		want     string
	}{
		"the archive of a .sources file, not its security archive": {
			files: map[string]string{"sources.list.d/debian.sources": `Types: deb
# a comment
URIs: http://mirror.test/debian-security
Suites: bookworm-security
Components: main

Types: deb
URIs: http://mirror.test/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
`},
			want: "http://mirror.test/debian",
		},
		"a line with options": {
			files: map[string]string{"sources.list": "deb [arch=amd64 signed-by=/k] http://mirror.test/debian/ trixie main contrib\n"},
			want:  "http://mirror.test/debian/",
		},
		"not another archive that uses Debian's suite names": {
			files: map[string]string{
				"sources.list.d/a.list": "deb http://engine.test/linux/debian bookworm stable\ndeb http://db.test/pub bookworm-pgdg main\n",
				"sources.list.d/z.list": "deb http://mirror.test/debian bookworm main\n",
			},
			want: "http://mirror.test/debian",
		},
		"what HTCD_DEBIAN_MIRROR says, before anything else": {
			override: "http://other.test/debian",
			want:     "http://other.test/debian",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.Mkdir(filepath.Join(dir, "sources.list.d"), 0o755))
			for file, text := range c.files {
				require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644))
			}
			got, err := debianMirror(dir, c.override)
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}

func TestDebianMirrorOfAMachineWithoutDebianNamesTheVariable(t *testing.T) {
	dir := t.TempDir()
	require.NoError(
		t,
		os.WriteFile(filepath.Join(dir, "sources.list"), []byte("deb http://mirror.test/ubuntu noble main\n"), 0o644),
	)
	_, err := debianMirror(dir, "")
	require.ErrorContains(t, err, "HTCD_DEBIAN_MIRROR")
}
