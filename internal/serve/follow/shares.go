package follow

import "sync"

// requester is who reads, and the namespace of what is read.
type requester struct{ user, namespace string }

// shares divides a scarce resource among readers: no user has more of it than is left for the others, and no namespace
// more than three quarters. So a newcomer finds some left, however many readers another has.
type shares struct {
	most int64

	mu   sync.Mutex
	held int64
	by   map[any]int64
}

// The keys of shares.by.
type (
	byUser      string
	byNamespace string
)

func newShares(most int64) *shares { return &shares{most: most, by: map[any]int64{}} }

// take reports whether p may have n more, and reserves them if so.
func (s *shares) take(p requester, n int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := s.most - s.held
	if n > left || s.by[byUser(p.user)]+n > left || s.by[byNamespace(p.namespace)]+n > s.most/4*3 {
		return false
	}
	s.add(p, n)
	return true
}

// give returns n.
func (s *shares) give(p requester, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(p, -n)
}

func (s *shares) add(p requester, n int64) {
	s.held += n
	for _, key := range []any{byUser(p.user), byNamespace(p.namespace)} {
		if s.by[key] += n; s.by[key] == 0 {
			delete(s.by, key)
		}
	}
}
