package aggregate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rs/zerolog"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Headers of an answer, by which a client whose connection broke can resume, and knows what is missing.
const (
	HeaderAttempt = "Htcd-Attempt"
	HeaderOffset  = "Htcd-Offset"
	HeaderJobs    = "Htcd-Jobs"
	HeaderItem    = "Htcd-Item" // path-escaped
)

// Records of the first header of a node's files in an archive. All but the first are there only if its step says where
// they land.
const (
	RecordNode      = "comment" // STEP/JOBID, or STEP/JOBID/NUMBER
	RecordVariables = "HTCD.variables"
	RecordNumber    = "HTCD.number" // within forEach
	RecordCluster   = "HTCD.cluster"
)

// newHandler answers requests that are already authorised.
func newHandler(source Source, proxy *FrontProxy, log zerolog.Logger) http.Handler {
	mux := http.NewServeMux()
	serveDiscovery(mux)
	serve := func(resource, what string, find func(context.Context, Query) (*Answer, error), contentType string,
		parameters ...string) {
		pattern := "GET /apis/" + GroupVersion.String() + "/namespaces/{namespace}/" + resource + "/{name}/log" + what
		mux.HandleFunc(pattern, answer(resource, source.Place, find, proxy, log, contentType, parameters...))
	}
	const text, lines = "text/plain; charset=utf-8", "application/x-ndjson"
	serve(resourceJobs, "", source.Log, text, "proc", "attempt", "stream", "follow", "tailLines", "offset")
	serve(resourceJobs, "/archive", source.Archive, "application/x-tar", "proc", "attempt", "from", "file")
	serve(resourceJobs, "/files", source.Files, lines, "proc", "attempt", "from")
	serve(resourceJobs, "/usage", source.Usage, "application/json", "attempt")
	serve(resourceJobs, "/procs", source.Procs, lines, "state", "attempt", "from", "limit")
	serve(resourceJobs, "/attempts", source.Attempts, lines)
	serve(
		resourceWorkflows,
		"",
		source.NodeLog,
		text,
		"step",
		"sequence",
		"index",
		"node",
		"attempt",
		"stream",
		"follow",
		"tailLines",
		"offset",
	)
	serve(resourceWorkflows, "/archive", source.NodeArchive, "application/x-tar", "step", "sequence", "attempt", "from")
	serve(resourceWorkflows, "/files", source.NodeFiles, lines, "step", "sequence", "attempt", "from")
	serve(resourceWorkflows, "/usage", source.NodeUsage, lines, "attempt")
	serve(resourceWorkflows, "/nodes", source.Nodes, lines, "step", "state", "after", "attempt", "limit")
	for _, scope := range []string{"", "/namespaces/{namespace}"} { // the apiserver asks RBAC for the cluster, or for the namespace
		mux.HandleFunc("GET /apis/"+GroupVersion.String()+scope+"/"+resourceHistory,
			answer(resourceHistory, source.Place, source.History, proxy, log, lines,
				"since", "user", "failed", "before", "limit"))
	}
	mux.HandleFunc("/", notServed)
	return mux
}

// literal answers paths that a mux would redirect, such as one with %2e%2e or an empty name, as it answers any other
// that is not served: the apiserver passes no redirect on, and tells the user of a bad gateway instead.
func literal(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path.Clean(r.URL.Path) != r.URL.Path || r.URL.RawPath != "" {
			notServed(w, r)
			return
		}
		h.ServeHTTP(w, r)
	})
}

func notServed(w http.ResponseWriter, r *http.Request) {
	writeStatus(
		w,
		apierrors.NewGenericServerResponse(
			http.StatusNotFound,
			r.Method,
			GroupVersion.WithResource(resourceJobs).GroupResource(),
			"",
			"htcd serves the output of jobs here: GET /namespaces/{namespace}/htcjobs/{name}/log, /log/archive, /log/files, /log/procs and /log/attempts, and of htcworkflows /log, /log/archive, /log/files, /log/usage and /log/nodes; GET [/namespaces/{namespace}]/history; and GET, PATCH and DELETE of /namespaces/{namespace}/uploads/{name}",
			0,
			true,
		),
	)
}

func answer(
	resource string,
	place func(Query) (give func(), err error),
	find func(context.Context, Query) (*Answer, error),
	proxy *FrontProxy,
	log zerolog.Logger,
	contentType string,
	parameters ...string,
) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q, err := parse(r.URL.Query(), parameters)
		if err != nil {
			writeStatus(w, apierrors.NewBadRequest(err.Error()))
			return
		}
		q.Resource, q.Namespace, q.Name, q.User = resource, r.PathValue(
			"namespace",
		), r.PathValue(
			"name",
		), proxy.user(
			r.Header,
		)
		give, err := place(q)
		if err != nil {
			writeStatus(w, err)
			return
		}
		defer give()
		a, err := find(r.Context(), q)
		if err != nil {
			if r.Context().Err() == nil {
				log.Debug().Err(err).Str("job", q.Namespace+"/"+q.Name).Msg("no output to show")
			}
			writeStatus(w, err)
			return
		}
		defer a.Close()
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set(HeaderOffset, strconv.FormatInt(a.Offset, 10))
		if a.Attempt > 0 {
			w.Header().Set(HeaderAttempt, strconv.Itoa(a.Attempt))
		}
		if a.Jobs > 0 {
			w.Header().Set(HeaderJobs, strconv.Itoa(a.Jobs))
		}
		if a.Item != "" {
			w.Header().Set(HeaderItem, url.PathEscape(a.Item))
		}
		w.WriteHeader(http.StatusOK)
		flush := http.NewResponseController(w)
		_ = flush.Flush() // so that a follower knows that there is something to follow
		if err := a.Write(r.Context(), flushing{w, flush}); err != nil {
			if r.Context().Err() == nil {
				log.Warn().Err(err).Str("job", q.Namespace+"/"+q.Name).Msg("output interrupted")
			}
			panic(http.ErrAbortHandler) // the reader must not mistake it for the end
		}
	}
}

// flushing passes on at once what is written.
type flushing struct {
	io.Writer
	*http.ResponseController
}

func (f flushing) Write(p []byte) (int, error) {
	n, err := f.Writer.Write(p)
	if err == nil {
		err = f.Flush()
	}
	return n, err
}

// parse reads the parameters, and refuses unknown ones: a misspelt one must not be ignored.
func parse(values url.Values, known []string) (Query, error) {
	q := Query{
		TailLines:   -1,
		AllProcs:    !values.Has("proc"),
		AnySequence: slices.Contains(known, "sequence") && !values.Has("sequence"),
	}
	number := func(value string, least, most int64) (int64, error) {
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < least || n > most {
			return 0, fmt.Errorf("%q: want a number from %d on", value, least)
		}
		return n, nil
	}
	const most = 1 << 31
	for _, name := range known {
		if !values.Has(name) {
			continue
		}
		value := values.Get(name)
		var n int64
		var err error
		switch name {
		case "proc", "from":
			n, err = number(value, 0, most)
			q.Proc = int(n)
		case "attempt":
			n, err = number(value, 0, most)
			q.Attempt = int(n)
		case "limit":
			n, err = number(value, 1, most)
			q.Limit = int(n)
		case "index":
			n, err = number(value, 0, most)
			q.Node.Index = int(n)
		case "sequence":
			q.Node.Sequence = AllSequences
			if value != "all" {
				n, err = number(value, 0, most)
				q.Node.Sequence = int(n)
			}
		case "step":
			q.Node.Step = value
		case "node":
			q.Node.Name = value
		case "state":
			if q.State = NodeState(value); !slices.Contains(NodeStates, q.State) {
				err = fmt.Errorf("%q: want one of %v", value, NodeStates)
			}
		case "after":
			q.After, err = parseKey(value)
		case "since":
			q.Past.Since, err = time.Parse(time.RFC3339Nano, value)
		case "user":
			q.Past.Account = value
		case "failed":
			q.Past.Failed, err = strconv.ParseBool(value)
		case "before":
			q.Past.Before, err = parsePastKey(value)
		case "tailLines":
			n, err = number(value, 0, most)
			q.TailLines = int(n)
		case "offset":
			q.Offset, err = number(value, 0, 1<<62)
		case "follow":
			q.Follow, err = strconv.ParseBool(value)
		case "file":
			if q.File = value; !fs.ValidPath(value) {
				err = fmt.Errorf("%q: want a path in the job's directory, such as plots/mass.png", value)
			}
		case "stream":
			q.Stderr = value == "stderr"
			if value != "stdout" && value != "stderr" {
				err = fmt.Errorf("%q: want stdout or stderr", value)
			}
		}
		if err != nil {
			return q, fmt.Errorf("%s: %w", name, err)
		}
		values.Del(name)
	}
	for name := range values {
		return q, fmt.Errorf("there is no parameter %q here", name)
	}
	return q, nil
}

// String is the key as a parameter.
func (k NodeKey) String() string { return strconv.Itoa(k.DAG) + "." + strconv.Itoa(k.Node) }

func parseKey(value string) (NodeKey, error) {
	dag, node, _ := strings.Cut(value, ".")
	d, err1 := strconv.ParseUint(dag, 10, 31)
	n, err2 := strconv.ParseUint(node, 10, 31)
	if err1 != nil || err2 != nil {
		return NodeKey{}, fmt.Errorf("%q: want two numbers with a dot between", value)
	}
	return NodeKey{int(d), int(n)}, nil // #nosec G115 -- 31 bits
}

// String is the key as a parameter.
func (k PastKey) String() string {
	return fmt.Sprintf("%s/%d/%s", k.Created.UTC().Format(time.RFC3339Nano), k.Attempt, k.UID)
}

func parsePastKey(value string) (k PastKey, err error) {
	created, rest, _ := strings.Cut(value, "/")
	attempt, uid, both := strings.Cut(rest, "/")
	var err1, err2 error
	k.Created, err1 = time.Parse(time.RFC3339Nano, created)
	k.Attempt, err2 = strconv.Atoi(attempt)
	k.UID = uid
	if err1 != nil || err2 != nil || !both {
		return PastKey{}, fmt.Errorf("%q: want CREATED/ATTEMPT/UID of an attempt", value)
	}
	return k, nil
}

// writeStatus answers with an error in the form of the Kubernetes API.
func writeStatus(w http.ResponseWriter, err error) {
	var known apierrors.APIStatus
	if !errors.As(err, &known) {
		known = apierrors.NewInternalError(err)
	}
	status := known.Status()
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	w.Header().Set("Content-Type", "application/json")
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(status.Details.RetryAfterSeconds)))
	}
	w.WriteHeader(int(status.Code))
	_ = json.NewEncoder(w).Encode(status) // the client may have gone
}
