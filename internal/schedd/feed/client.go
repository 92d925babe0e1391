package feed

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"htc.cern.ch/htcd/internal/schedd"
)

const (
	silent      = 5 * beatEvery    // after which a feed counts as away
	mostBehind  = 10 * time.Second // of the server, with reading what is there
	mostSkew    = 30 * time.Second // between an event's clock and ours
	reconnect   = time.Second
	maxEvent    = 8 << 20 // a line of the stream
	connectTime = 10 * time.Second
	// doubted is for how long a contradiction counts that HTCondor was not asked about again: those jobs may have gone.
	doubted = 10 * time.Minute
)

// Client asks a feed. Set its exported fields before its first use.
type Client struct {
	URL  string // https://host:port
	TLS  *tls.Config
	Now  func() time.Time
	Told func(problem string) // whenever that changes; "" if it can be used

	once sync.Once
	http *http.Client

	mu      sync.Mutex // for what follows
	heard   time.Time  // the latest event
	state   State
	mark    Mark                     // the highest that it has had
	older   bool                     // its mark has gone back: it reads an older spool
	born    int64                    // of the schedd's queue, as HTCondor says; 0: not known
	differs map[string]contradiction // by whose jobs HTCondor was asked about
	told    bool
	said    string // the problem that Told knows, once it was told
}

// contradiction is what HTCondor has said otherwise than the feed, and when.
type contradiction struct {
	jobs []string
	at   time.Time
}

func (c *Client) client() *http.Client {
	c.once.Do(func() {
		c.http = &http.Client{Transport: &http.Transport{
			TLSClientConfig:        c.TLS,
			DialContext:            (&net.Dialer{Timeout: connectTime}).DialContext,
			TLSHandshakeTimeout:    connectTime,
			MaxResponseHeaderBytes: 16 << 10,
			IdleConnTimeout:        time.Minute,
		}}
	})
	return c.http
}

// get asks for a path. Of a refusal no more than a line is read.
func (c *Client) get(ctx context.Context, path string, values url.Values) (*http.Response, error) {
	request, err := http.NewRequestWithContext(
		ctx,
		http.MethodGet,
		strings.TrimSuffix(c.URL, "/")+path+"?"+values.Encode(),
		nil,
	)
	if err != nil {
		return nil, err
	}
	answer, err := c.client().Do(request) // #nosec G704 -- an administrator has named it
	if err != nil {
		if e, is := errors.AsType[*url.Error](err); is { // the URL is as long as the question
			err = e.Err
		}
		return nil, fmt.Errorf("%s: %w", c.URL, err)
	}
	if answer.StatusCode != http.StatusOK {
		defer answer.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 300)) // for people
		return nil, fmt.Errorf("%s: %s: %s", c.URL, answer.Status, strings.TrimSpace(string(text)))
	}
	return answer, nil
}

// Ask is a schedd.Mirror. An answer that is older than what the feed has said before is an error.
func (c *Client) Ask(ctx context.Context, q schedd.Question) (io.ReadCloser, error) {
	values := url.Values{"constraint": {q.Constraint}, "attributes": {q.Attributes}}
	path := jobsPath
	if q.Limit > 0 {
		values.Set("limit", strconv.Itoa(q.Limit))
	}
	if q.Left {
		path = leftPath
		values.Set("since", q.Since)
	}
	answer, err := c.get(ctx, path, values)
	if err != nil {
		return nil, err
	}
	if err := c.current(answer.Header.Get(markHeader)); err != nil {
		_ = answer.Body.Close()
		return nil, err
	}
	return answer.Body, nil
}

func (c *Client) current(text string) error {
	mark, err := ParseMark(text)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if mark.Born != c.mark.Born || mark.compare(c.mark) < 0 {
		return fmt.Errorf("an answer as of %s, which is before %s", mark, c.mark)
	}
	return nil
}

// State asks the feed what it is.
func (c *Client) State(ctx context.Context) (s State, err error) {
	answer, err := c.get(ctx, statePath, nil)
	if err != nil {
		return s, err
	}
	defer answer.Body.Close()
	return s, json.NewDecoder(io.LimitReader(answer.Body, maxEvent)).Decode(&s)
}

// Run follows the feed until ctx ends. It calls changed when jobs may have changed: an event is only a hint.
func (c *Client) Run(ctx context.Context, changed func()) {
	for ctx.Err() == nil {
		err := c.follow(ctx, changed)
		if ctx.Err() != nil {
			return
		}
		c.mu.Lock()
		c.heard = time.Time{}
		c.mu.Unlock()
		c.tell(err)
		select {
		case <-ctx.Done():
		case <-time.After(reconnect):
		}
	}
}

// follow reads the stream until it ends or says nothing any more.
func (c *Client) follow(ctx context.Context, changed func()) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	quiet := time.AfterFunc(silent, stop)
	defer quiet.Stop()
	values := url.Values{}
	c.mu.Lock()
	if c.mark != (Mark{}) && !c.older {
		values.Set("after", c.mark.String())
	}
	c.mu.Unlock()
	answer, err := c.get(ctx, changesPath, values)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, maxEvent)
	for first := true; lines.Scan(); first = false {
		quiet.Reset(silent)
		var e Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return fmt.Errorf("%s: an event that cannot be read: %w", c.URL, err)
		}
		c.hear(e)
		c.tell(nil)
		if first || e.Missed || len(e.Changed) > 0 {
			changed()
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return errors.New("the stream has ended")
}

func (c *Client) hear(e Event) {
	mark, err := ParseMark(e.Mark)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard, c.state = c.Now(), e.State
	switch {
	case err != nil: // it has a problem, and says which
	case mark.Born != c.mark.Born: // it is HTCondor's word that counts, see Usable
		c.mark, c.older = mark, false
	default:
		if c.older = mark.compare(c.mark) < 0; !c.older {
			c.mark = mark
		}
	}
}

// tell says what is wrong, when that has changed.
func (c *Client) tell(err error) {
	problem := ""
	if err == nil {
		err = c.Usable()
	}
	if err != nil {
		problem = err.Error()
	}
	c.mu.Lock()
	news := problem != c.said || !c.told
	c.said, c.told = problem, true
	c.mu.Unlock()
	if news {
		c.Told(problem)
	}
}

// Usable returns why the feed must not be used now, nil if it may be.
func (c *Client) Usable() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.Now()
	skew := c.heard.Sub(time.Unix(c.state.Now, 0))
	switch {
	case c.heard.IsZero() || now.Sub(c.heard) > silent:
		return errors.New("it does not answer")
	case c.state.Problem != "":
		return errors.New("it cannot read the schedd's files: " + c.state.Problem)
	case time.Duration(c.state.Behind)*time.Second > mostBehind:
		return fmt.Errorf("it is %d seconds behind the schedd's files", c.state.Behind)
	case skew.Abs() > mostSkew:
		return fmt.Errorf("what it says comes %s late, or its clock is wrong", skew.Round(time.Second))
	case c.older:
		return fmt.Errorf(
			"it shows an older state (%s) than it has shown before (%s): is that an older spool?",
			c.state.Mark,
			c.mark,
		)
	case c.born == 0:
		return errors.New("HTCondor has not said yet which queue the schedd has")
	case c.born != c.mark.Born:
		return fmt.Errorf("it shows a queue of %s, and the schedd has one of %s", date(c.mark.Born), date(c.born))
	}
	for _, whose := range slices.Sorted(maps.Keys(c.differs)) {
		if d := c.differs[whose]; now.Sub(d.at) < doubted {
			return errors.New("HTCondor said otherwise: " + strings.Join(d.jobs, ", "))
		}
	}
	return nil
}

func date(unix int64) string { return time.Unix(unix, 0).UTC().Format(time.RFC3339) }

// latest returns the highest mark.
func (c *Client) latest() Mark {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mark
}

// held records what HTCondor has answered about somebody's jobs: when its queue was set up, and for which of them the
// feed was wrong. What it has answered about the jobs of others still counts.
func (c *Client) held(whose string, born int64, differ []string) {
	c.mu.Lock()
	c.born = born
	delete(c.differs, whose)
	if len(differ) > 0 {
		if c.differs == nil {
			c.differs = map[string]contradiction{}
		}
		c.differs[whose] = contradiction{differ, c.Now()}
	}
	c.mu.Unlock()
	c.tell(nil)
}
