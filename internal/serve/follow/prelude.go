package follow

import (
	"bytes"
	"io"
	"sync"

	"htc.cern.ch/htcd/internal/schedd"
)

// mostPrelude is how much sshd could say that would explain anything.
const mostPrelude = 16 << 10

// prelude passes on what comes after schedd.Joined. What comes before, such as that the account has no home directory
// on the node, is only of interest if nothing comes after.
type prelude struct {
	w io.Writer

	mu     sync.Mutex
	before []byte
	joined bool
}

func (p *prelude) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	rest := b
	if !p.joined {
		at := bytes.IndexByte(b, schedd.Joined)
		if at < 0 {
			p.before = append(p.before, b[:min(len(b), mostPrelude-len(p.before))]...)
			return len(b), nil
		}
		p.joined, p.before, rest = true, nil, b[at+1:]
	}
	if len(rest) == 0 {
		return len(b), nil
	}
	if _, err := p.w.Write(rest); err != nil {
		return 0, err
	}
	return len(b), nil
}

// flush passes on what was said where no command has begun.
func (p *prelude) flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.before) > 0 {
		_, _ = p.w.Write(p.before) // the user may have gone
		p.before = nil
	}
}
