package notify

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
)

// eventType is the type of the events that Send posts.
const eventType = "ch.cern.htc.job.ended"

// startType is that of an event that tells a start, holdType that of one that tells of a hold.
const (
	startType = "ch.cern.htc.job.started"
	holdType  = "ch.cern.htc.job.held"
)

// Callback is the content of an event: this job ended with this return code, or has started, or HTCondor is about to
// hold it.
type Callback struct {
	Name      string // of the HTCJob
	Namespace string
	JobID     string // cluster.proc, as HTCondor prints it
	Started   bool   // it has started; of the following only the node's number is set
	// its script has ended, but HTCondor cannot bring back what it leaves, or is yet to write it to URLs; only Stderr
	// and the node's number are set
	Held    bool
	Retcode int    // 0 to 255
	Stderr  string // the end of its standard error; empty: it has succeeded, or wrote nothing
	Node    *Node  // nil: the job is not one of a workflow's DAG
}

// Node is what only a job of a DAG reports.
type Node struct {
	Number int // in the DAG, from 0
	Exit   int // what the job ends with, and HTCondor sees, instead of Retcode: 0 to 255
	// Results are lines name=number that its script has written: the first MaxResults bytes, and one more if there are
	// more.
	Results string
}

// data is the Callback in the event's form.
type data struct {
	Name      string          `json:"name"`
	Namespace string          `json:"namespace"`
	JobID     string          `json:"jobid"`
	Started   bool            `json:"started,omitempty"`
	Held      bool            `json:"held,omitempty"`
	Retcode   json.RawMessage `json:"retcode,omitempty"` // a number or a string; absent from a start and a hold
	Node      *int            `json:"node,omitempty"`
	Exit      *int            `json:"exit,omitempty"` // absent: the same as retcode
	Stderr    string          `json:"stderr,omitempty"`
	Results   string          `json:"results,omitempty"`
}

// MaxStderr is how many bytes of the end of its standard error a job reports.
const MaxStderr = 4 << 10

// MaxResults is how many bytes of results a node may report.
const MaxResults = 4 << 10

const (
	maxRetcode = 255
	maxName    = 253 // checked separately: {0,251} in the expression takes 0.2 MB
)

var (
	objectName = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`)
	jobID      = regexp.MustCompile(`^[1-9][0-9]{0,9}\.(0|[1-9][0-9]{0,9})$`)
)

// IsJobID reports whether a text is a job's id as HTCondor prints it, such as 884426.0.
func IsJobID(text string) bool { return jobID.MatchString(text) }

// check returns what is wrong with a callback, in terms of the event's data.
func (c Callback) check() error {
	switch {
	case len(c.Name) > maxName || !objectName.MatchString(c.Name):
		return fmt.Errorf("data.name %.100q is not the name of an HTCJob", c.Name)
	case len(c.Namespace) > maxName || !objectName.MatchString(c.Namespace):
		return fmt.Errorf("data.namespace %.100q is not the name of a namespace", c.Namespace)
	case !IsJobID(c.JobID):
		return fmt.Errorf(`data.jobid %.100q is not a job id such as "884426.0"`, c.JobID)
	case c.Retcode < 0 || c.Retcode > maxRetcode:
		return fmt.Errorf("data.retcode %d is not from 0 to %d", c.Retcode, maxRetcode)
	case c.Node == nil:
		return nil
	case c.Node.Number < 0:
		return fmt.Errorf("data.node %d is not the number of a node", c.Node.Number)
	case c.Node.Exit < 0 || c.Node.Exit > maxRetcode:
		return fmt.Errorf("data.exit %d is not from 0 to %d", c.Node.Exit, maxRetcode)
	}
	return nil
}

// errMediaType: the body is in no form that an event can have.
var errMediaType = errors.New("want Content-Type application/cloudevents+json, or application/json with ce- headers")

// decode reads the event out of a message's header and body.
func decode(header http.Header, body []byte) (Callback, error) {
	e, err := read(header, body)
	if err != nil {
		return Callback{}, err
	}
	if err := e.Validate(); err != nil {
		return Callback{}, fmt.Errorf("not a valid CloudEvent: %w", err)
	}
	if e.SpecVersion() != event.CloudEventsVersionV1 {
		return Callback{}, fmt.Errorf("CloudEvents specversion %.20q is not 1.0", e.SpecVersion())
	}
	return decodeData(e.Data())
}

// read accepts an event in either form: all of it in the body, or its data there and the rest in ce- headers. The SDK's
// own package for this needs 0.8 MB for a logger that nothing uses.
func read(header http.Header, body []byte) (e event.Event, err error) {
	kind, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	switch {
	case err == nil && kind == event.ApplicationCloudEventsJSON:
		if err := json.Unmarshal(body, &e); err != nil {
			return e, fmt.Errorf("not a CloudEvent: %w", err)
		}
		return e, nil
	case err != nil || kind != event.ApplicationJSON:
		return e, errMediaType
	case header.Get("ce-specversion") != event.CloudEventsVersionV1:
		return e, errors.New(
			"not a CloudEvent: with Content-Type application/json the header ce-specversion must be 1.0",
		)
	}
	e = event.New(event.CloudEventsVersionV1) // Validate reports what its setters refuse
	e.SetID(header.Get("ce-id"))
	e.SetSource(header.Get("ce-source"))
	e.SetType(header.Get("ce-type"))
	e.SetDataContentType(kind)
	e.DataEncoded = body
	return e, nil
}

func decodeData(raw []byte) (Callback, error) {
	var d data
	if len(raw) == 0 {
		return Callback{}, errors.New("the event has no data")
	}
	if err := json.Unmarshal(raw, &d); err != nil {
		if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && kind.Field != "" {
			want := "a string"
			switch kind.Type.Kind() {
			case reflect.Int:
				want = "an integer"
			case reflect.Bool:
				want = "true or false"
			}
			return Callback{}, fmt.Errorf("data.%s is a %s and should be %s", kind.Field, kind.Value, want)
		} else if ok {
			return Callback{}, fmt.Errorf("the event's data is a JSON %s and should be an object", kind.Value)
		}
		return Callback{}, fmt.Errorf("the event's data: %w", err)
	}
	if d.Started || d.Held {
		c := Callback{Name: d.Name, Namespace: d.Namespace, JobID: d.JobID, Started: d.Started, Held: !d.Started}
		if c.Held {
			c.Stderr = tail(d.Stderr)
		}
		if d.Node != nil {
			c.Node = &Node{Number: *d.Node}
		}
		return c, c.check()
	}
	retcode, err := decodeRetcode(d.Retcode)
	if err != nil {
		return Callback{}, err
	}
	c := Callback{Name: d.Name, Namespace: d.Namespace, JobID: d.JobID, Retcode: retcode, Stderr: tail(d.Stderr)}
	if d.Node != nil {
		c.Node = &Node{Number: *d.Node, Exit: retcode, Results: head(d.Results)}
		if d.Exit != nil {
			c.Node.Exit = *d.Exit
		}
	}
	return c, c.check()
}

// tail returns the end of a job's standard error as far as it is kept.
func tail(stderr string) string {
	if len(stderr) > MaxStderr {
		stderr = strings.ToValidUTF8(stderr[len(stderr)-MaxStderr:], "")
	}
	return stderr
}

// head returns a node's results as far as they are used, and a byte more.
func head(results string) string { return results[:min(len(results), MaxResults+1)] }

// decodeRetcode takes an integer in plain decimals, quoted or not.
func decodeRetcode(raw json.RawMessage) (int, error) {
	if len(raw) == 0 {
		return 0, errors.New("data.retcode is missing")
	}
	text := string(raw)
	if raw[0] == '"' {
		if err := json.Unmarshal(raw, &text); err != nil {
			return 0, fmt.Errorf("data.retcode: %w", err)
		}
	}
	n, err := strconv.Atoi(text)
	if err != nil || strconv.Itoa(n) != text {
		return 0, fmt.Errorf("data.retcode %.100q is not an integer from 0 to %d", text, maxRetcode)
	}
	return n, nil
}

// encode makes the structured event of a callback.
func encode(c Callback, now time.Time) ([]byte, error) {
	e := event.New(event.CloudEventsVersionV1)
	e.SetType(eventType)
	switch {
	case c.Started:
		e.SetType(startType)
	case c.Held:
		e.SetType(holdType)
	}
	e.SetSource("/htcjobs/" + c.Namespace + "/" + c.Name)
	e.SetSubject(c.JobID)
	e.SetID(rand.Text())
	e.SetTime(now)
	d := data{Name: c.Name, Namespace: c.Namespace, JobID: c.JobID, Started: c.Started, Held: c.Held}
	if c.Node != nil {
		d.Node = &c.Node.Number
	}
	if !c.Started {
		d.Stderr = plain(tail(c.Stderr))
	}
	if !c.Started && !c.Held {
		d.Retcode = json.RawMessage(strconv.Itoa(c.Retcode))
		if c.Node != nil {
			d.Exit, d.Results = &c.Node.Exit, plain(head(c.Node.Results))
		}
	}
	var text bytes.Buffer
	w := json.NewEncoder(&text)
	w.SetEscapeHTML(false)
	if err := w.Encode(d); err != nil {
		return nil, err
	}
	e.SetDataContentType(event.ApplicationJSON)
	e.DataEncoded = bytes.TrimSpace(text.Bytes())
	return e.MarshalJSON() // json.Marshal would escape what HTML would mind
}

// plain replaces what takes more than an escape in JSON, as callback.sh does: maxBody counts on it.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}
