package push

import "sync"

// passes remembers, by the key of its HTCJob, how far a pass has got. It is safe for concurrent use.
type passes struct {
	mu sync.Mutex
	m  map[string]pass
}

type pass struct {
	from int   // the number of the output to go on with
	err  error // the first failure
}

func (s *passes) at(key string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.m[key].from
}

// failed lets the pass go on after the output with that number.
func (s *passes) failed(key string, number int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.m == nil {
		s.m = map[string]pass{}
	}
	p := s.m[key]
	p.from = number + 1
	if p.err == nil {
		p.err = err
	}
	s.m[key] = p
}

// end returns the first failure of a pass.
func (s *passes) end(key string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.m[key].err
	delete(s.m, key)
	return err
}
