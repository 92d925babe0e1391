package uploads

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"htc.cern.ch/htcd/internal/output"
)

// clock is one that stands until it is moved.
type clock struct{ now time.Time }

// store is one with much room, in which nobody names anything, at a time near the real one: files have that.
func store(t *testing.T) (*Store, *clock) {
	t.Helper()
	at := &clock{time.Now()}
	now := func() time.Time { return at.now }
	volume := func() (free, size output.Room, err error) {
		return output.Room{Bytes: 1 << 40, Files: 1 << 30}, output.Room{Bytes: 1 << 40, Files: 1 << 30}, nil
	}
	return &Store{
		Root:  filepath.Join(t.TempDir(), "uploads"),
		Now:   now,
		Quota: output.Room{Bytes: 1 << 20, Files: 3},
		Shares: &output.Shares{
			Volume:  volume,
			Reserve: func(output.Room) output.Room { return output.Room{} },
			Now:     now,
		},
		Users: func(string, string) ([]string, error) { return nil, nil },
	}, at
}

// again is the store after a restart.
func again(s *Store) *Store {
	return &Store{Root: s.Root, Shares: s.Shares, Quota: s.Quota, Users: s.Users, Now: s.Now}
}

func nameOf(content string) string {
	return fmt.Sprintf("%s%x", Prefix, sha256.Sum256([]byte(content)))
}

func put(t *testing.T, s *Store, namespace, content string) Upload {
	t.Helper()
	u, err := s.Begin(namespace, nameOf(content), int64(len(content)))
	require.NoError(t, err)
	if u.Whole {
		return u
	}
	u, err = s.Append(t.Context(), namespace, nameOf(content), u.Offset, strings.NewReader(content[u.Offset:]))
	require.NoError(t, err)
	require.True(t, u.Whole)
	return u
}

func code(t *testing.T, err error) int {
	t.Helper()
	var status apierrors.APIStatus
	require.ErrorAs(t, err, &status)
	return int(status.Status().Code)
}

func TestEachPieceOfAnUploadCountsOnce(t *testing.T) {
	s, _ := store(t)
	content := strings.Repeat("0123456789", 8<<10)
	const pieces = 10
	name, size, piece := nameOf(content), int64(len(content)), int64(len(content)/pieces)
	// What others have is so much that a closer look is taken, and three quarters of the rest hold the upload.
	of := output.Room{Bytes: 1 << 40, Files: 1 << 30}
	free := output.Room{Bytes: 2 * size, Files: 1 << 20}
	s.Shares.Volume = func() (output.Room, output.Room, error) { return free, of, nil }
	s.Shares.Kept = []string{s.Root}
	u, err := s.Begin("ns", name, size)
	require.NoError(t, err)
	for !u.Whole {
		u, err = s.Append(t.Context(), "ns", name, u.Offset, strings.NewReader(content[u.Offset:u.Offset+piece]))
		require.NoError(t, err)
		free.Bytes -= piece
	}
}

func TestAnUploadThatIsCutGoesOnWhereItStood(t *testing.T) {
	s, _ := store(t)
	content := strings.Repeat("0123456789", 50_000)
	name, size := nameOf(content), int64(len(content))
	cut := errors.New("the connection is cut")
	var offset int64
	for _, end := range []int64{100_001, 300_000, 499_999} {
		u, err := s.Begin("ns", name, size)
		require.NoError(t, err)
		require.Equal(t, offset, u.Offset, "what came is there")
		body := io.MultiReader(strings.NewReader(content[offset:end]), iotest.ErrReader(cut))
		u, err = s.Append(t.Context(), "ns", name, offset, body)
		require.ErrorIs(t, err, cut)
		require.Equal(t, end, u.Offset)
		require.False(t, u.Whole)
		s, offset = again(s), end
	}
	u, err := s.Append(t.Context(), "ns", name, offset, strings.NewReader(content[offset:]))
	require.NoError(t, err)
	require.True(t, u.Whole)
	path, err := s.Path("ns", name)
	require.NoError(t, err)
	there, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, content, string(there))

	u, err = again(s).Begin("ns", name, size)
	require.NoError(t, err)
	require.True(t, u.Whole, "it is not uploaded again")
	all, err := s.List("ns")
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, size, all[0].Size)
}

func TestAnUploadWhoseLastByteWasKeptBeforeARestartIsFinished(t *testing.T) {
	s, _ := store(t)
	u, err := s.Begin("ns", nameOf("content"), 7)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(s.Root, "ns", partName(u.digest(), 7)), []byte("content"), 0o600))
	s = again(s)
	u, err = s.Begin("ns", nameOf("content"), 7)
	require.NoError(t, err)
	require.Equal(t, int64(7), u.Offset)
	require.False(t, u.Whole)
	u, err = s.Append(t.Context(), "ns", nameOf("content"), 7, http.NoBody)
	require.NoError(t, err)
	require.True(t, u.Whole)
	require.True(t, put(t, s, "ns", "").Whole, "an empty file")
}

func TestWhatIsNoUploadIsRefused(t *testing.T) {
	s, _ := store(t)
	digest := nameOf("x")
	for name, c := range map[string]struct {
		namespace, name string
		size            int64
	}{
		"a path":               {"ns", Prefix + strings.Repeat("../", 21) + "x", 1},
		"a control character":  {"ns", digest[:len(digest)-1] + "\n", 1},
		"capitals":             {"ns", Prefix + strings.ToUpper(digest[len(Prefix):]), 1},
		"no prefix":            {"ns", digest[len(Prefix):], 1},
		"a size below nothing": {"ns", digest, -1},
		"more than any volume": {"ns", digest, 1<<63 - 1},
		"a namespace above":    {"..", digest, 1},
		"a namespace's path":   {"a/b", digest, 1},
		"no namespace":         {"", digest, 1},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := s.Begin(c.namespace, c.name, c.size)
			require.Equal(t, http.StatusUnprocessableEntity, code(t, err))
			if c.size != 1 {
				return
			}
			_, err = s.Append(t.Context(), c.namespace, c.name, 0, strings.NewReader("x"))
			require.Equal(t, http.StatusUnprocessableEntity, code(t, err))
			require.Error(t, s.Delete(c.namespace, c.name))
			_, err = s.Path(c.namespace, c.name)
			require.Error(t, err)
		})
	}
	require.NoDirExists(t, s.Root)
}

func TestASizeOrAContentThatIsALieIsFound(t *testing.T) {
	s, _ := store(t)
	name := nameOf("content")
	begin := func(size int64) error { _, err := s.Begin("ns", name, size); return err }
	add := func(offset int64, text string) error {
		_, err := s.Append(t.Context(), "ns", name, offset, strings.NewReader(text))
		return err
	}
	require.Equal(t, http.StatusNotFound, code(t, add(0, "content")), "it was not begun")
	require.NoError(t, begin(7))
	require.ErrorContains(t, begin(8), "has 7 bytes, and not 8")
	require.ErrorContains(t, add(3, "content"), "has 0 bytes: go on there, and not at 3")
	require.NoError(t, add(0, "con"))
	require.Equal(t, http.StatusConflict, code(t, add(0, "content")), "what is there is not written again")
	require.Equal(t, http.StatusConflict, code(t, add(2, "ntent")))
	require.ErrorContains(t, add(3, "tent and more"), "goes on after the 7 bytes")
	require.NoError(t, add(7, ""), "what belongs to it is there")
	require.ErrorContains(t, begin(6), "has 7 bytes, and not 6")

	name = nameOf("another")
	require.NoError(t, begin(7))
	require.ErrorContains(t, add(0, "mistake"), "have the digest "+nameOf("mistake"))
	all, err := s.List("ns")
	require.NoError(t, err)
	require.Len(t, all, 1, "it is dropped")
	require.NoError(t, begin(3), "with a size that is too small")
	require.Error(t, add(0, "another"))
	require.ErrorContains(t, add(3, ""), "have the digest")
}

func TestOneOfTwoWritersWaits(t *testing.T) {
	s, _ := store(t)
	_, err := s.Begin("ns", nameOf("content"), 7)
	require.NoError(t, err)
	from, to := io.Pipe()
	var first sync.WaitGroup
	first.Go(func() {
		_, err := s.Append(context.Background(), "ns", nameOf("content"), 0, from)
		require.NoError(t, err)
	})
	_, err = to.Write([]byte("con"))
	require.NoError(t, err)
	_, err = s.Append(t.Context(), "ns", nameOf("content"), 0, strings.NewReader("content"))
	require.True(t, apierrors.IsTooManyRequests(err))
	require.True(t, apierrors.IsTooManyRequests(s.Delete("ns", nameOf("content"))))
	require.NoError(t, s.Sweep(), "it is left alone")
	require.NoError(t, to.Close())
	first.Wait()
	u, err := s.Append(t.Context(), "ns", nameOf("content"), 3, strings.NewReader("tent"))
	require.NoError(t, err)
	require.True(t, u.Whole)
}

func TestANamespaceHasAQuotaOfItsOwn(t *testing.T) {
	s, _ := store(t)
	large := strings.Repeat("x", 700<<10)
	put(t, s, "ns", large)
	_, err := s.Begin("ns", nameOf("y"), 400<<10)
	require.ErrorContains(t, err, "more than the 1 MiB that it may have (--upload-quota), beside 1 MiB")
	require.Equal(t, http.StatusForbidden, code(t, err))
	_, err = s.Begin("other", nameOf("y"), 400<<10)
	require.NoError(t, err)
	_, err = s.Begin("other", nameOf("z"), maxSize)
	require.Equal(t, http.StatusForbidden, code(t, err))

	put(t, s, "ns", "1")
	put(t, s, "ns", "2")
	_, err = again(s).Begin("ns", nameOf("3"), 1)
	require.ErrorContains(t, err, "has 3 uploads, as many as it may have (--upload-files)")
	require.NoError(t, s.Delete("ns", nameOf("1")))
	put(t, s, "ns", "3")
	require.Equal(t, http.StatusNotFound, code(t, s.Delete("ns", nameOf("1"))))

	// What is not finished counts as a whole.
	require.NoError(t, s.Delete("ns", nameOf(large)))
	require.NoError(t, s.Delete("ns", nameOf("3")))
	_, err = s.Begin("ns", nameOf("y"), 1000<<10)
	require.NoError(t, err)
	_, err = again(s).Begin("ns", nameOf("z"), 100<<10)
	require.ErrorContains(t, err, "--upload-quota")
	require.NoError(t, s.Delete("ns", nameOf("y")))
	put(t, s, "ns", large)
}

func TestAFullVolumeTakesNothingMore(t *testing.T) {
	s, _ := store(t)
	free := output.Room{Bytes: 100 << 10, Files: 100}
	s.Shares.Volume = func() (_, size output.Room, err error) {
		return free, output.Room{Bytes: 1 << 40, Files: 1 << 30}, nil
	}
	s.Shares.Reserve = func(output.Room) output.Room { return output.Room{Bytes: 50 << 10, Files: 10} }
	_, err := s.Begin("ns", nameOf("y"), 60<<10)
	require.ErrorContains(t, err, "do not fit on htcd's volume")
	require.Equal(t, http.StatusInsufficientStorage, code(t, err))
	u, err := s.Begin("ns", nameOf("content"), 7)
	require.NoError(t, err)
	free.Bytes = 40 << 10
	_, err = s.Append(t.Context(), "ns", nameOf("content"), 0, strings.NewReader("content"))
	require.Equal(t, http.StatusInsufficientStorage, code(t, err))
	require.Zero(t, u.Offset)
	free.Bytes = 100 << 10
	put(t, s, "ns", "content")
}

func TestAnUploadGoesWithItsLastUser(t *testing.T) {
	s, at := store(t)
	users := map[string][]string{}
	s.Users = func(_, name string) ([]string, error) { return users[name], nil }
	used, unused, begun := put(t, s, "ns", "used").Name, put(t, s, "ns", "unused").Name, nameOf("begun")
	_, err := s.Begin("ns", begun, 5)
	require.NoError(t, err)
	left := func(names ...string) {
		t.Helper()
		require.NoError(t, s.Sweep())
		all, err := s.List("ns")
		require.NoError(t, err)
		var there []string
		for _, u := range all {
			there = append(there, u.Name)
		}
		require.ElementsMatch(t, names, there)
	}
	users[used] = []string{"HTCJob fit"}
	left(used, unused, begun)
	require.ErrorContains(t, s.Delete("ns", used), "is an input of HTCJob fit")
	users[used] = nil
	left(used, unused, begun) // its user was there for a moment only
	users[used] = []string{"HTCWorkflow scan"}
	at.now = at.now.Add(settles + time.Minute)
	left(used, unused, begun)
	users[used] = nil
	_, err = s.Begin("ns", used, 4)
	require.NoError(t, err)
	left(used, unused, begun) // somebody is about to name it
	at.now = at.now.Add(settles + time.Minute)
	users[used] = []string{"HTCJob fit"}
	left(used, unused, begun)
	users[used] = nil
	left(unused, begun)
	users[unused] = []string{"HTCJob fit"}
	at.now = at.now.Add(kept)
	left(unused)
	at.now = at.now.Add(kept)
	left(unused)
	users[unused] = nil
	left()
	require.Zero(t, s.spaces["ns"].used)

	s.Only = "ns"
	_, err = s.Begin("other", begun, 5)
	require.ErrorContains(t, err, "works for namespace ns alone")
}

func TestManySmallUploadsAreCounted(t *testing.T) {
	s, _ := store(t)
	s.Quota.Files = 2000
	for i := range 2000 {
		_, err := s.Begin("ns", nameOf(fmt.Sprint(i)), 1)
		require.NoError(t, err)
	}
	_, err := s.Begin("ns", nameOf("x"), 1)
	require.ErrorContains(t, err, "--upload-files")
	all, err := again(s).List("ns")
	require.NoError(t, err)
	require.Len(t, all, 2000)
	require.Equal(t, output.Room{Bytes: 2000, Files: 2000}, s.spaces["ns"].used)
	require.NotEmpty(t, bytes.TrimSpace([]byte(all[0].Name)))
}
