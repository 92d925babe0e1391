package cache

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// silence is how long a build says nothing.
const silence = 10 * time.Second

// account says how far a command is, of the lines that it has written.
type account interface {
	line(text string)
	// now is empty as long as there is nothing to tell.
	now() string
}

// progress tells how far a command is whenever it has said nothing for a while.
type progress struct {
	mu      sync.Mutex
	account account
	log     func(string)
	timer   *time.Timer
	ended   bool
}

func (c *Cache) tell(name string, a account) *progress {
	p := &progress{account: a, log: func(text string) { c.Log("%s: %s", name, text) }}
	p.timer = time.AfterFunc(silence, p.tick)
	return p
}

func (p *progress) tick() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return
	}
	if text := p.account.now(); text != "" {
		p.log(text)
	}
	p.timer.Reset(silence)
}

func (p *progress) step(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log(text)
	p.timer.Reset(silence)
}

func (p *progress) line(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.account.line(text)
}

func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	p.timer.Stop()
}

// latest is the account of a command of which only its last line tells anything.
type latest struct{ text string }

func (l *latest) line(text string) {
	if text = strings.TrimSpace(text); text != "" {
		l.text = text
	}
}

func (l *latest) now() string { return l.text }

// compiling is the account of go build -v, which names each package as it begins to compile it.
type compiling struct {
	latest
	begun, all int
}

func (p *compiling) line(text string) {
	if text == "" || strings.ContainsAny(text, " \t") {
		p.latest.line(text)
		return
	}
	p.begun++
	p.text = ""
}

func (p *compiling) now() string {
	switch {
	case p.text != "":
		return p.text
	case p.begun == p.all:
		return fmt.Sprintf("package %d of %d, linking", p.begun, p.all)
	}
	return fmt.Sprintf("package %d of %d", p.begun, p.all)
}
