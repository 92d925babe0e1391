package uploads

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/internal/output"
)

// Prefix begins the name of an upload in an input; its digest follows.
const Prefix = "sha256:"

// Upload is a file, as a line of JSON in a list.
type Upload struct {
	Name    string    `json:"name"` // with Prefix
	Size    int64     `json:"size"` // bytes
	Offset  int64     `json:"offset"`
	Whole   bool      `json:"whole"`
	Changed time.Time `json:"changed"`
	Users   []string  `json:"users,omitempty"` // names of the HTCJobs and HTCWorkflows that name it
}

// Store is the tree of all uploads. Its methods may be called by several goroutines. Errors are a *StatusError of
// apimachinery if the user can do something about them.
type Store struct {
	Root   string
	Shares *output.Shares // of the volume's room
	Quota  output.Room    // of a namespace; 0: no limit
	Only   string         // the one namespace whose objects Users knows; empty: it knows all
	// Users returns the names of the HTCJobs and HTCWorkflows that name an upload.
	Users func(namespace, name string) ([]string, error)
	Now   func() time.Time

	mu     sync.Mutex
	spaces map[string]*space
}

// space is what is known of a namespace's directory.
type space struct {
	dir string

	mu    sync.Mutex // not held while content is read or written
	used  output.Room
	parts map[string]*part // by digest
}

// part is an upload that is not finished.
type part struct {
	name string // of the file
	size int64
	busy bool

	sum    hash.Hash // of what is there; nil: not known
	summed int64     // bytes
}

var (
	digestRE    = regexp.MustCompile(`^[a-f0-9]{64}$`)
	partRE      = regexp.MustCompile(`^([a-f0-9]{64})\.([0-9]{1,18})\.part$`)
	namespaceRE = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
)

func refuse(code int32, reason metav1.StatusReason, format string, args ...any) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: fmt.Sprintf(format, args...),
		Details: &metav1.StatusDetails{Kind: "uploads"},
	}}
}

func invalid(format string, args ...any) error {
	return refuse(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, format, args...)
}

// Digest returns the digest in an upload's name.
func Digest(name string) (string, error) {
	digest, is := strings.CutPrefix(name, Prefix)
	if !is || !digestRE.MatchString(digest) {
		return "", invalid("upload %q: want %s and 64 digits of 0-9 and a-f", name, Prefix)
	}
	return digest, nil
}

// Path is where a whole upload is, if there is one. The file never changes.
func (s *Store) Path(namespace, name string) (string, error) {
	digest, err := Digest(name)
	if err != nil {
		return "", err
	}
	if !namespaceRE.MatchString(namespace) {
		return "", invalid("namespace %q: want a Kubernetes name", namespace)
	}
	return filepath.Join(s.Root, namespace, digest), nil
}

// space returns that of a namespace, whose directory is read the first time.
func (s *Store) space(namespace string) (*space, error) {
	switch {
	case !namespaceRE.MatchString(namespace):
		return nil, invalid("namespace %q: want a Kubernetes name", namespace)
	case s.Only != "" && s.Only != namespace:
		return nil, refuse(http.StatusForbidden, metav1.StatusReasonForbidden,
			"this htcd works for namespace %s alone, and takes no uploads of another", s.Only)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := s.spaces[namespace]; at != nil {
		return at, nil
	}
	at := &space{dir: filepath.Join(s.Root, namespace), parts: map[string]*part{}}
	files, err := list(at.dir)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		at.used = at.used.Plus(output.Room{Bytes: f.Size, Files: 1})
		if !f.Whole {
			at.parts[f.digest()] = &part{name: partName(f.digest(), f.Size), size: f.Size}
		}
	}
	if s.spaces == nil {
		s.spaces = map[string]*space{}
	}
	s.spaces[namespace] = at
	return at, nil
}

// locate returns the space of an upload, and its digest.
func (s *Store) locate(namespace, name string) (at *space, digest string, err error) {
	if digest, err = Digest(name); err != nil {
		return nil, "", err
	}
	at, err = s.space(namespace)
	return at, digest, err
}

// path is where an upload is, or what there is of it. The space is locked.
func (at *space) path(digest string) string {
	if p := at.parts[digest]; p != nil {
		return filepath.Join(at.dir, p.name)
	}
	return filepath.Join(at.dir, digest)
}

// maxSize is more than any volume has, in bytes, and sums of it are still numbers.
const maxSize = 1 << 50

func partName(digest string, size int64) string { return fmt.Sprintf("%s.%d.part", digest, size) }

func (u Upload) digest() string { return strings.TrimPrefix(u.Name, Prefix) }

// list lists the files of a namespace's directory by their names; none if it does not exist.
func list(dir string) ([]Upload, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all := make([]Upload, 0, len(entries))
	for _, entry := range entries {
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // it was renamed or dropped meanwhile
		}
		if err != nil {
			return nil, err
		}
		u := Upload{
			Name:    Prefix + entry.Name(),
			Size:    info.Size(),
			Offset:  info.Size(),
			Whole:   true,
			Changed: info.ModTime(),
		}
		if m := partRE.FindStringSubmatch(entry.Name()); m != nil {
			u.Name, u.Whole = Prefix+m[1], false
			u.Size, _ = strconv.ParseInt(m[2], 10, 64) // 18 digits
		} else if !digestRE.MatchString(entry.Name()) {
			continue
		}
		all = append(all, u)
	}
	return all, nil
}

// List returns the uploads of a namespace with their users, by name.
func (s *Store) List(namespace string) ([]Upload, error) {
	at, err := s.space(namespace)
	if err != nil {
		return nil, err
	}
	all, err := list(at.dir)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].Users, err = s.Users(namespace, all[i].Name); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Begin says where an upload of so many bytes stands, and begins it if there is none. One that is there is kept for
// another while, even if nobody names it.
func (s *Store) Begin(namespace, name string, size int64) (Upload, error) {
	at, digest, err := s.locate(namespace, name)
	if err != nil {
		return Upload{}, err
	}
	if size < 0 || size > maxSize {
		return Upload{}, invalid("upload %s: size %d: want 0 to %d", name, size, int64(maxSize))
	}
	at.mu.Lock()
	defer at.mu.Unlock()
	u, err := s.stands(at, digest)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := s.create(at, namespace, digest, size); err != nil {
			return Upload{}, err
		}
		return s.stands(at, digest)
	case err != nil:
		return u, err
	case u.Size != size:
		return u, invalid(
			"upload %s has %d bytes, and not %d: one of the two was not counted right",
			name,
			u.Size,
			size,
		)
	}
	u.Changed = s.Now()
	return u, os.Chtimes(at.path(digest), time.Time{}, u.Changed)
}

// stands looks an upload up; fs.ErrNotExist if there is none. The space is locked.
func (s *Store) stands(at *space, digest string) (Upload, error) {
	u := Upload{Name: Prefix + digest}
	p := at.parts[digest]
	info, err := os.Stat(at.path(digest))
	if err != nil {
		if p != nil && errors.Is(err, fs.ErrNotExist) { // somebody has removed it
			at.forget(digest)
		}
		return u, err
	}
	u.Size, u.Offset, u.Changed, u.Whole = info.Size(), info.Size(), info.ModTime(), p == nil
	if p != nil {
		u.Size = p.size
	}
	return u, nil
}

// forget takes an unfinished upload out of what is counted.
func (at *space) forget(digest string) {
	at.used = at.used.Minus(output.Room{Bytes: at.parts[digest].size, Files: 1})
	delete(at.parts, digest)
}

// create begins an upload, if there is room. The space is locked.
func (s *Store) create(at *space, namespace, digest string, size int64) error {
	want := at.used.Plus(output.Room{Bytes: size, Files: 1})
	const instead = "htcd upload --list shows them, htcd upload --delete removes one that nothing names, and they go with the HTCJobs and HTCWorkflows that name them"
	switch {
	case s.Quota.Bytes > 0 && want.Bytes > s.Quota.Bytes:
		return refuse(
			http.StatusForbidden,
			metav1.StatusReasonForbidden,
			"with %d MiB more, the uploads of namespace %s would have more than the %d MiB that it may have (--upload-quota), beside %d MiB that it has: %s",
			mib(size),
			namespace,
			s.Quota.Bytes>>20,
			mib(at.used.Bytes),
			instead,
		)
	case s.Quota.Files > 0 && want.Files > s.Quota.Files:
		return refuse(
			http.StatusForbidden,
			metav1.StatusReasonForbidden,
			"namespace %s has %d uploads, as many as it may have (--upload-files): %s; or pack files into one",
			namespace,
			at.used.Files,
			instead,
		)
	}
	if err := s.fits(namespace, size); err != nil {
		return err
	}
	if err := os.MkdirAll(at.dir, 0o700); err != nil {
		return err
	}
	p := &part{name: partName(digest, size), size: size, sum: sha256.New()}
	f, err := os.OpenFile(
		filepath.Join(at.dir, p.name),
		os.O_WRONLY|os.O_CREATE|os.O_EXCL,
		0o600,
	) // #nosec G304 -- of checked names
	if err != nil {
		return noRoom(err)
	}
	err = f.Close()
	for _, dir := range []string{at.dir, s.Root, filepath.Dir(s.Root)} {
		err = errors.Join(err, output.SyncDir(dir))
	}
	if err != nil {
		return err
	}
	at.used, at.parts[digest] = want, p
	return nil
}

func mib(bytes int64) int64 { return (bytes + 1<<20 - 1) >> 20 }

// fits refuses what the volume has no room for, before its content comes.
func (s *Store) fits(namespace string, size int64) error {
	booking, err := s.book(namespace, size)
	if err == nil {
		booking.Leave()
	}
	return err
}

func (s *Store) book(namespace string, size int64) (*output.Booking, error) {
	booking, _, err := s.Shares.BookAll(namespace, output.FileRoom(size))
	if err == nil && booking == nil {
		err = full(
			fmt.Sprintf(
				"%d MiB do not fit on htcd's volume, beside what stays free (--keep-free) and what others may take",
				mib(size),
			),
		)
	}
	return booking, err
}

func full(why string) error {
	return refuse(http.StatusInsufficientStorage, "InsufficientStorage", "%s: %s", why, output.MoreRoom)
}

// noRoom puts an error into words if it is that of a full volume.
func noRoom(err error) error {
	if output.Full(err) || errors.Is(err, output.ErrTooMuch) || errors.Is(err, output.ErrOverShare) {
		return full("htcd's volume has no room for more")
	}
	return err
}

// Delete drops an upload that nothing names.
func (s *Store) Delete(namespace, name string) error {
	at, digest, err := s.locate(namespace, name)
	if err != nil {
		return err
	}
	users, err := s.Users(namespace, name)
	if err != nil {
		return err
	}
	if len(users) > 0 {
		return refuse(
			http.StatusConflict,
			metav1.StatusReasonConflict,
			"upload %s is an input of %s: delete that, and the upload goes with the last that names it",
			name,
			strings.Join(users[:min(len(users), 5)], ", "),
		)
	}
	at.mu.Lock()
	defer at.mu.Unlock()
	u, err := s.stands(at, digest)
	if errors.Is(err, fs.ErrNotExist) {
		return refuse(
			http.StatusNotFound,
			metav1.StatusReasonNotFound,
			"there is no upload %s in namespace %s",
			name,
			namespace,
		)
	}
	if err != nil {
		return err
	}
	return at.drop(u)
}

// drop removes an upload. The space is locked.
func (at *space) drop(u Upload) error {
	digest := u.digest()
	p := at.parts[digest]
	if p != nil && p.busy {
		return busy(u.Name)
	}
	if err := os.Remove(at.path(digest)); err != nil {
		return err
	}
	if p != nil {
		at.forget(digest)
	} else {
		at.used = at.used.Minus(output.Room{Bytes: u.Size, Files: 1})
	}
	return nil
}

func busy(name string) error {
	return apierrors.NewTooManyRequests(fmt.Sprintf("upload %s is being written by somebody: try again", name), 1)
}

// The times for which uploads are kept.
const (
	// kept is how long one stays that nothing names, finished or not, since it was last asked for or added to.
	kept = 24 * time.Hour
	// settles is how long a whole one is left alone after it was asked for: the object that is about to name it may
	// take so long to be seen.
	settles = 5 * time.Minute
)

// Sweep drops what nobody needs, in all namespaces whose objects Users knows.
func (s *Store) Sweep() error {
	names, err := os.ReadDir(s.Root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, entry := range names {
		if namespaceRE.MatchString(entry.Name()) && (s.Only == "" || s.Only == entry.Name()) {
			err = errors.Join(err, s.sweep(entry.Name()))
		}
	}
	return err
}

func (s *Store) sweep(namespace string) error {
	at, err := s.space(namespace)
	if err != nil {
		return err
	}
	all, err := list(at.dir)
	if err != nil {
		return err
	}
	for _, u := range all {
		users, err := s.Users(namespace, u.Name)
		if err != nil {
			return err
		}
		if err := s.judge(at, u, len(users) > 0); err != nil {
			return err
		}
	}
	return nil
}

// judge drops an upload that nobody needs, or notes that it is named.
func (s *Store) judge(at *space, u Upload, named bool) error {
	at.mu.Lock()
	defer at.mu.Unlock()
	now, err := s.stands(at, u.digest())
	idle := s.Now().Sub(now.Changed)
	p := at.parts[u.digest()]
	switch {
	case errors.Is(err, fs.ErrNotExist), p != nil && p.busy:
		return nil
	case err != nil:
		return err
	case named && now.Whole && idle > settles && idle < kept:
		return os.Chtimes(at.path(u.digest()), time.Time{}, time.Unix(0, 0))
	case idle > kept && !(named && now.Whole):
		return at.drop(now)
	}
	return nil
}
