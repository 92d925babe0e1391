package security

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/test/trial"
)

// sampler repeatedly records the arguments and environments of all processes in the lab.
type sampler struct {
	end, ended chan struct{}

	mu       sync.Mutex
	seen     map[string]bool // arguments and environment, each ended by a NUL
	programs map[string]bool
}

// pause is the time between two samples; condor_submit and kinit take tens of milliseconds on this machine.
const pause = 5 * time.Millisecond

func watchProcesses(b *trial.Bench) *sampler {
	b.T.Helper()
	id, err := b.Lab.Identity()
	require.NoError(b.T, err)
	s := &sampler{
		end:      make(chan struct{}),
		ended:    make(chan struct{}),
		seen:     map[string]bool{},
		programs: map[string]bool{},
	}
	go func() {
		defer close(s.ended)
		for tick := time.NewTicker(pause); ; {
			s.look(id.Init)
			select {
			case <-s.end:
				return
			case <-tick.C:
			}
		}
	}()
	b.T.Cleanup(func() { s.stop() })
	return s
}

// look records what the descendants of a process reveal.
func (s *sampler) look(pid int) {
	arguments, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	environment, err2 := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err == nil && err2 == nil && len(arguments) > 0 {
		program, _, _ := strings.Cut(string(arguments), "\x00")
		s.mu.Lock()
		s.seen[string(arguments)+string(environment)] = true
		s.programs[filepath.Base(program)] = true
		s.mu.Unlock()
	}
	for _, child := range trial.Children(pid) {
		s.look(child)
	}
}

func (s *sampler) saw(program string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.programs[program]
}

// stop ends the sampling and returns what was seen.
func (s *sampler) stop() map[string]bool {
	select {
	case <-s.end:
	default:
		close(s.end)
	}
	<-s.ended
	return s.seen
}
