package aggregate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/gorilla/websocket"
	"github.com/rs/zerolog"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Size is that of a terminal.
type Size struct{ Width, Height uint16 }

// Streams are those of a command in a job's container.
type Streams struct {
	Stdin          io.Reader // nil: none
	Stdout, Stderr io.Writer // of a terminal Stderr is nil
	Sizes          <-chan Size
}

// Command is what a user runs in the container of a job, or of a workflow's node, or the port there that he connects
// to.
type Command struct {
	Query
	Words []string
	Port  int // 0: Words are run; else its Stdin and Stdout are a connection to the port
	TTY   bool
	Stdin bool
}

// ExitError is the end of a command with another code than 0.
type ExitError struct{ Code int }

func (e ExitError) Error() string { return fmt.Sprintf("exit code %d", e.Code) }

// Shells runs commands in jobs' containers.
type Shells interface {
	// Authorize returns nil if the user may. The apiserver has only asked for the verb get, with which each WebSocket
	// begins.
	Authorize(ctx context.Context, user authenticationv1.UserInfo, q Query) error
	// Begin returns what runs the command; its error is nil, an ExitError, or says why it could not be run to its end.
	Begin(ctx context.Context, c Command) (run func(ctx context.Context, s Streams) error, err error)
}

// serveExec answers exec of a job, and of a node of a workflow, as that of a Pod is answered: v5.channel.k8s.io. With
// port in the place of command, standard input and output are a connection to that port.
func serveExec(mux *http.ServeMux, shells Shells, proxy *FrontProxy, log zerolog.Logger) {
	for resource, parameters := range map[string][]string{resourceJobs: {"proc"}, resourceWorkflows: {"step", "sequence", "index", "node"}} {
		mux.HandleFunc(
			"GET /apis/"+GroupVersion.String()+"/namespaces/{namespace}/"+resource+"/{name}/exec",
			func(w http.ResponseWriter, r *http.Request) {
				c, err := parseCommand(r.URL.Query(), parameters)
				if err != nil {
					writeStatus(w, apierrors.NewBadRequest(err.Error()))
					return
				}
				user := proxy.userInfo(r.Header)
				c.Resource, c.Namespace, c.Name, c.User = resource, r.PathValue(
					"namespace",
				), r.PathValue(
					"name",
				), user.Username
				if err := shells.Authorize(r.Context(), user, c.Query); err != nil {
					writeStatus(w, err)
					return
				}
				if !websocket.IsWebSocketUpgrade(r) || !slices.Contains(websocket.Subprotocols(r), protocolV5) {
					writeStatus(
						w,
						apierrors.NewBadRequest("this is a WebSocket of the protocol "+protocolV5+": use htcd exec"),
					)
					return
				}
				run, err := shells.Begin(r.Context(), c)
				if err != nil {
					writeStatus(w, err)
					return
				}
				socket, err := upgrade(w, r, c)
				if err != nil {
					log.Debug().Err(err).Str("job", c.Namespace+"/"+c.Name).Msg("no WebSocket")
					return
				}
				ctx, cancel := context.WithCancel(r.Context())
				defer cancel()
				for _, untilGone := range []func(){socket.read, func() { socket.beat(ctx) }} {
					go func() {
						defer cancel() // the user has gone
						untilGone()
					}()
				}
				socket.end(run(ctx, socket.streams(c)))
			},
		)
	}
}

// mostWords bounds a command.
const mostWords = 32 << 10

// parseCommand reads the parameters of a request; known are those that say where to run the command.
func parseCommand(values url.Values, known []string) (c Command, err error) {
	words := values["command"]
	length := 0
	for _, word := range words {
		length += len(word) + 1
	}
	if values.Has("port") && !values.Has("command") {
		if c.Port, err = strconv.Atoi(values.Get("port")); err != nil || c.Port < 1 || c.Port > 65535 {
			return c, fmt.Errorf("port: %q: want a number from 1 to 65535", values.Get("port"))
		}
		c.Stdin = true
		values.Del("port")
		values.Del("stdin") // client-go says the same of every connection
		values.Del("tty")
	}
	switch {
	case c.Port > 0:
	case len(words) == 0 || words[0] == "":
		return c, errors.New("command: want a command to run, such as sh")
	case length > mostWords:
		return c, fmt.Errorf("command: want at most %d bytes", mostWords)
	}
	values.Del("command")
	var always bool // standard output and error are passed on, whatever is asked for
	for name, to := range map[string]*bool{"tty": &c.TTY, "stdin": &c.Stdin, "stdout": &always, "stderr": &always} {
		if !values.Has(name) {
			continue
		}
		if *to, err = strconv.ParseBool(values.Get(name)); err != nil {
			return c, fmt.Errorf("%s: %q: want true or false", name, values.Get(name))
		}
		values.Del(name)
	}
	c.Words = words
	c.Query, err = parse(values, known)
	return c, err
}

// status is what the error channel says at the end.
func status(err error) metav1.Status {
	exit, exited := errors.AsType[ExitError](err)
	var known apierrors.APIStatus
	switch {
	case err == nil:
		return metav1.Status{Status: metav1.StatusSuccess}
	case exited:
		return metav1.Status{
			Status:  metav1.StatusFailure,
			Reason:  "NonZeroExitCode",
			Message: "command terminated with " + exit.Error(),
			Details: &metav1.StatusDetails{
				Causes: []metav1.StatusCause{{Type: "ExitCode", Message: strconv.Itoa(exit.Code)}},
			},
		}
	case errors.As(err, &known):
		return known.Status()
	}
	return metav1.Status{
		Status:  metav1.StatusFailure,
		Reason:  metav1.StatusReasonInternalError,
		Code:    http.StatusInternalServerError,
		Message: err.Error(),
	}
}
