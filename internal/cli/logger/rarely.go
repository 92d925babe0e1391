package logger

import (
	"io"
	"regexp"
	"sync"
	"time"
)

// rarely passes a line on unless it has passed the same one, but for its time, within a minute: client-go says each
// second that it cannot have the Lease.
type rarely struct {
	to  io.Writer
	now func() time.Time

	mu   sync.Mutex
	said map[string]time.Time
}

const (
	pause     = time.Minute
	mostLines = 100 // remembered at once
)

var stamp = regexp.MustCompile(`"time":"[^"]*"`)

func (r *rarely) Write(line []byte) (int, error) {
	if !r.news(stamp.ReplaceAllString(string(line), "")) {
		return len(line), nil
	}
	return r.to.Write(line)
}

func (r *rarely) news(words string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	if at, is := r.said[words]; is && now.Sub(at) < pause {
		return false
	}
	if len(r.said) >= mostLines || r.said == nil {
		r.said = map[string]time.Time{}
	}
	r.said[words] = now
	return true
}
