package fairqueue

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// Turns gives out places for what holds up nobody but those that wait for the same: so many in all, so many at each
// host, and one for each namespace. Those that find none wait, and namespaces take turns as in the queue: whose last
// turn was the longest ago is next. A key that needs a place at a full host is passed over, so a host that does not
// answer has its own places and no others.
//
//	Take ──> waits ── a place becomes free: Go ──> Take ──> has a place ── Leave
type Turns struct {
	Places  int
	PerHost int
	Now     func() time.Time
	// Go is called when a key that waits may have a place, which is kept for it for a moment: it should call Take.
	Go func(key string)

	mu    sync.Mutex
	held  map[string]place
	line  []place
	last  map[string]int // by namespace: the number of its last turn
	turns int
}

const (
	keptFor = 30 * time.Second // a place for a key that waited for it
	awaited = 3 * time.Minute  // how long a key waits without asking again
)

// place is one that a key has, or waits for.
type place struct {
	key   string
	hosts []string
	until time.Time // when it ends unless the key is heard of; the zero time: never
}

func (p place) namespace() string { return namespaceOf(p.key) }

func (p place) over(now time.Time) bool { return !p.until.IsZero() && now.After(p.until) }

// Full is why a key gets no place.
type Full int

// The reasons.
const (
	Room        Full = iota
	OfNamespace      // its namespace has one
	OfHost           // all at one of its hosts are taken
	OfAll            // all are taken
	Turn             // there is one, but it is another namespace's turn
)

// Take takes a place at hosts for a key, which must Leave it. Otherwise it says why not, and the key waits.
func (t *Turns) Take(key string, hosts []string) Full {
	t.mu.Lock()
	now := t.Now()
	if t.held == nil {
		t.held, t.last = map[string]place{}, map[string]int{}
	}
	at := slices.IndexFunc(t.line, func(p place) bool { return p.key == key })
	if at < 0 && t.held[key].key == "" {
		at, t.line = len(t.line), append(t.line, place{})
	}
	if at >= 0 {
		t.line[at] = place{key, hosts, now.Add(awaited)}
	}
	may := t.pass(now)
	why := Room
	if p, has := t.held[key]; has {
		p.until = time.Time{}
		t.held[key] = p
	} else if why = t.taken().full(place{key: key, hosts: hosts}); why == Room {
		why = Turn
	}
	t.mu.Unlock()
	t.call(may, key)
	return why
}

// Leave gives a place back, or stops waiting for one.
func (t *Turns) Leave(key string) {
	t.mu.Lock()
	delete(t.held, key)
	t.line = slices.DeleteFunc(t.line, func(p place) bool { return p.key == key })
	may := t.pass(t.Now())
	t.mu.Unlock()
	t.call(may, key)
}

func (t *Turns) call(keys []string, but string) {
	for _, key := range keys {
		if key != but && t.Go != nil {
			t.Go(key)
		}
	}
}

// pass gives places to those that wait, as long as there are any, and returns their keys.
func (t *Turns) pass(now time.Time) (may []string) {
	maps.DeleteFunc(t.held, func(_ string, p place) bool { return p.over(now) })
	t.line = slices.DeleteFunc(t.line, func(p place) bool { return p.over(now) })
	for {
		i := next(t.line, t.taken(), t.last)
		if i < 0 {
			break
		}
		p := t.line[i]
		t.line = slices.Delete(t.line, i, i+1)
		p.until = now.Add(keptFor)
		t.held[p.key] = p
		t.turns++
		t.last[p.namespace()] = t.turns
		may = append(may, p.key)
	}
	if len(t.held)+len(t.line) == 0 {
		clear(t.last)
	}
	return may
}

// next returns which of those that wait gets the next place, -1 if none does: of those with room, the one whose
// namespace's last turn was the longest ago, and of these the one that has waited the longest.
func next(line []place, held taken, last map[string]int) int {
	best := -1
	for i, p := range line {
		if held.left <= 0 {
			break
		}
		if (best < 0 || last[p.namespace()] < last[line[best].namespace()]) && held.full(p) == Room {
			best = i
		}
	}
	return best
}

// taken sums up the places that are held.
type taken struct {
	by      map[string]bool // namespaces
	at      map[string]int  // hosts
	perHost int
	left    int
}

func (t *Turns) taken() taken {
	sum := taken{map[string]bool{}, map[string]int{}, t.PerHost, t.Places - len(t.held)}
	for _, p := range t.held {
		sum.by[p.namespace()] = true
		for _, host := range p.hosts {
			sum.at[host]++
		}
	}
	return sum
}

// full returns why there is no room for one more.
func (t taken) full(p place) Full {
	if t.by[p.namespace()] {
		return OfNamespace
	}
	for _, host := range p.hosts {
		if t.at[host] >= t.perHost {
			return OfHost
		}
	}
	if t.left <= 0 {
		return OfAll
	}
	return Room
}
