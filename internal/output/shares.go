package output

import (
	"io/fs"
	"maps"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/singleflight"
)

// Shares divides the room of a volume among namespaces. Of what neither stays free nor is taken by other namespaces,
// one namespace takes three quarters at most, in bytes as in files: however many have taken their shares, another one
// finds room. Set the fields before the first use; the methods may be called by several goroutines.
type Shares struct {
	Volume  func() (free, size Room, err error)
	Reserve func(size Room) Room // what stays free
	Kept    []string             // directories, in each of which a namespace has one with what it keeps
	Alone   bool                 // there is one namespace, which may take everything
	Now     func() time.Time

	measuring singleflight.Group // by namespace; it may take minutes

	mu    sync.Mutex // not held meanwhile
	under map[*Booking]bool
	kept  map[string]measured
}

// measured is what a namespace has kept.
type measured struct {
	at   time.Time
	room Room
}

// measuredFor is how long a namespace is not measured again. What it adds meanwhile counts as Keep says.
const measuredFor = time.Minute

// OverShare says of a namespace that something would be more than its share.
const OverShare = "would have more than three quarters of what the others leave of the volume"

// Left is what a namespace may still use of a volume.
type Left struct {
	Free    Room // beside what stays free and what is booked
	Reserve Room // what stays free
	kept    Room // by the namespace
	under   Room // what is booked for it
	booked  Room // for all, of what is not written yet
	alone   bool
}

// Unbooked is what is free beside what stays free, also what is booked.
func (l Left) Unbooked() Room { return l.Free.Plus(l.booked) }

// Holds reports whether so much fits, and leaves to others what it must.
func (l Left) Holds(want Room) bool { return l.Free.Holds(want) && l.most().Holds(want) }

// most is what the namespace may add: then it has three times as much as is left.
func (l Left) most() Room {
	if l.alone {
		return l.Free
	}
	used := l.kept.Plus(l.under)
	return Room{(3*l.Free.Bytes - used.Bytes) / 4, (3*l.Free.Files - used.Files) / 4}
}

// Booking is room for something that is being written. Leave it at the end.
type Booking struct {
	of        *Shares
	namespace string
	room      Room
	most      Room   // what the namespace may add
	dir       string // where it is written; empty: not known yet
	kept      Room   // what stays of it when it is left
}

// Book books for a namespace what choose wants of what is left. choose is asked a second time, after a closer look, if
// it says that it wants more. There is no booking if it wants nothing.
func (s *Shares) Book(namespace string, choose func(Left) (want Room, more bool)) (*Booking, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// At first nothing of what is booked counts as written, and everything on the volume as kept by this namespace: a
	// closer look takes time.
	left, err := s.left(namespace, func(b *Booking) Room { return b.room }, nil)
	if err != nil {
		return nil, err
	}
	want, more := choose(left)
	if more {
		s.mu.Unlock()
		kept := s.keeps(namespace)
		s.mu.Lock()
		if left, err = s.left(namespace, (*Booking).unwritten, &kept); err != nil {
			return nil, err
		}
		want, _ = choose(left)
	}
	if want == (Room{}) {
		return nil, nil
	}
	if s.under == nil {
		s.under = map[*Booking]bool{}
	}
	b := &Booking{of: s, namespace: namespace, room: want, most: left.most()}
	s.under[b] = true
	return b, nil
}

// BookAll books so much for a namespace, and returns what was left of the volume. There is no booking if that does not
// hold it.
func (s *Shares) BookAll(namespace string, want Room) (b *Booking, left Left, err error) {
	b, err = s.Book(namespace, func(l Left) (Room, bool) {
		if left = l; l.Holds(want) {
			return want, false
		}
		return Room{}, true
	})
	return b, left, err
}

// left returns what a namespace may use that keeps so much, or nil for everything on the volume.
func (s *Shares) left(namespace string, open func(*Booking) Room, kept *Room) (l Left, err error) {
	l.alone = s.Alone
	for b := range s.under {
		l.booked = l.booked.Plus(open(b))
		if b.namespace == namespace {
			l.under = l.under.Plus(b.room)
		}
	}
	// Only now: what is written meanwhile counts twice, which is better than not at all.
	free, size, err := s.Volume()
	if err != nil {
		return l, err
	}
	l.Reserve = s.Reserve(size)
	l.Free = free.Minus(l.Reserve).Minus(l.booked)
	switch {
	case kept != nil:
		l.kept = *kept
	case len(s.Kept) > 0:
		l.kept = size.Minus(free)
	}
	return l, nil
}

// In says where that is written for which there is the booking. What is there already belongs to it, too.
func (b *Booking) In(dir string, already Room) {
	b.of.mu.Lock()
	defer b.of.mu.Unlock()
	b.dir, b.room = dir, b.room.Plus(already)
}

// Keep says how much of what the booking is for stays when it is left; without it, nothing does.
func (b *Booking) Keep(kept Room) { b.kept = kept }

// Leave ends the booking.
func (b *Booking) Leave() {
	b.of.mu.Lock()
	defer b.of.mu.Unlock()
	delete(b.of.under, b)
	if m, is := b.of.kept[b.namespace]; is {
		m.room = m.room.Plus(b.kept)
		b.of.kept[b.namespace] = m
	}
}

// unwritten is what a booking may still take of what is free.
func (b *Booking) unwritten() Room {
	if b.dir == "" {
		return b.room
	}
	left := b.room.Minus(Taken(b.dir))
	return Room{max(left.Bytes, 0), max(left.Files, 0)}
}

// keeps returns what a namespace keeps. Others book while it is measured.
func (s *Shares) keeps(namespace string) Room {
	if len(s.Kept) == 0 {
		return Room{}
	}
	now := s.Now()
	if m, is := s.measured(namespace, now); is {
		return m
	}
	room, _, _ := s.measuring.Do(namespace, func() (any, error) {
		m := measured{at: now}
		for _, dir := range s.Kept {
			m.room = m.room.Plus(Taken(filepath.Join(dir, namespace)))
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.kept == nil {
			s.kept = map[string]measured{}
		}
		s.kept[namespace] = m
		return m.room, nil
	})
	return room.(Room)
}

// measured returns what a namespace keeps if that was measured lately, and forgets what was not.
func (s *Shares) measured(namespace string, now time.Time) (Room, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.kept, func(_ string, m measured) bool { return now.Sub(m.at) >= measuredFor })
	m, is := s.kept[namespace]
	return m.room, is
}

// block is the least that a file takes.
const block = 4 << 10

// onDisk is what so many bytes take.
func onDisk(bytes int64) int64 { return (bytes + block - 1) / block * block }

// FileRoom is what a file of that size takes.
func FileRoom(bytes int64) Room { return Room{onDisk(bytes), 1} }

// fileID names a file that has several names.
type fileID struct{ dev, ino uint64 }

// linked reports whether a file was seen before under another name.
func linked(seen map[fileID]bool, info fs.FileInfo) bool {
	stat, is := info.Sys().(*syscall.Stat_t)
	if !is || stat.Nlink < 2 {
		return false
	}
	id := fileID{stat.Dev, stat.Ino}
	was := seen[id]
	seen[id] = true
	return was
}
