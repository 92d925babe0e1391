package secrets

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestADirectoryIsFollowed(t *testing.T) {
	dir := t.TempDir()
	d := newDirectory(dir)
	put := func(name, content string) {
		t.Helper()
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+".new"), []byte(content), 0o600))
		require.NoError(t, os.Rename(filepath.Join(dir, name+".new"), filepath.Join(dir, name)))
	}
	require.Equal(t, Unread, d.current().State)
	require.False(t, d.look())
	require.True(t, d.look(), "nothing there, twice")
	require.Equal(t, Missing, d.current().State)

	put("username", "alice")
	require.False(t, d.look(), "an agent may be writing")
	put("password", "old")
	require.False(t, d.look())
	require.True(t, d.look())
	require.Equal(t, map[string][]byte{"username": []byte("alice"), "password": []byte("old")}, d.current().Data)
	require.False(t, d.look())

	put("password", "new")
	require.False(t, d.look())
	require.Equal(t, "old", string(d.current().Data["password"]))
	require.True(t, d.look())
	require.Equal(t, "new", string(d.current().Data["password"]))

	require.NoError(t, os.Remove(filepath.Join(dir, "username")))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "username"), 0o700))
	require.False(t, d.look(), "it cannot be read")
	require.False(t, d.look())
	require.Equal(t, Present, d.current().State)
}

func TestADirectoryMayBeALinkThatIsReplaced(t *testing.T) {
	// As the kubelet mounts a Secret.
	dir := t.TempDir()
	for name, password := range map[string]string{"..1": "one", "..2": "two"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name, "password"), []byte(password), 0o600))
	}
	link := func(to string) {
		t.Helper()
		require.NoError(t, os.Symlink(to, filepath.Join(dir, "..next")))
		require.NoError(t, os.Rename(filepath.Join(dir, "..next"), filepath.Join(dir, "..data")))
	}
	link("..1")
	require.NoError(t, os.Symlink("..data/password", filepath.Join(dir, "password")))
	d := newDirectory(dir)
	d.look()
	require.True(t, d.look())
	require.Equal(t, "one", string(d.current().Data["password"]))
	link("..2")
	d.look()
	require.True(t, d.look())
	require.Equal(t, "two", string(d.current().Data["password"]))
}
