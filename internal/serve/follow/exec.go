package follow

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"golang.org/x/crypto/ssh"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/serve/aggregate"
)

// Shells runs commands in the containers of running jobs.
type Shells struct {
	Reader *Reader
	// Connect connects to the sshd that HTCondor starts beside a job.
	Connect func(ctx context.Context, id schedd.Identity, cluster, proc int, fn func(*ssh.Client) error) error
	// Review asks the apiserver.
	Review func(ctx context.Context, review *authorizationv1.SubjectAccessReview,
		options metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error)
	// Closed says why nobody may run anything in a run's jobs; empty: nothing speaks against it.
	Closed func(ctx context.Context, run ledger.Run) (why string, err error)
	// Used is told of each use.
	Used   func(object runtime.Object, q aggregate.Query, message string)
	Places int // most at once

	places    *shares
	forwarded *shares // connections to ports
	links     *links
}

// NewShells returns Shells that are complete.
func NewShells(s Shells) *Shells {
	s.places, s.forwarded, s.links = newShares(int64(s.Places)), newShares(mostForwarded), newLinks(lingers)
	return &s
}

var _ aggregate.Shells = (*Shells)(nil)

// Authorize asks for the verb create of htcjobs/exec or htcworkflows/exec.
func (s *Shells) Authorize(ctx context.Context, user authenticationv1.UserInfo, q aggregate.Query) error {
	extra := map[string]authorizationv1.ExtraValue{}
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	review, err := s.Review(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace:   q.Namespace,
			Name:        q.Name,
			Verb:        "create",
			Group:       aggregate.GroupVersion.Group,
			Version:     aggregate.GroupVersion.Version,
			Resource:    q.Resource,
			Subresource: "exec",
		},
	}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("ask the apiserver whether %q may create %s/exec: %w", user.Username, q.Resource, err)
	}
	if user.Username == "" || !review.Status.Allowed || review.Status.Denied {
		return apierrors.NewForbidden(
			aggregate.GroupVersion.WithResource(q.Resource+"/exec").GroupResource(),
			q.Name,
			fmt.Errorf(
				"user %q cannot create resource %q in API group %q in the namespace %q (ClusterRole htcjob-exec)",
				user.Username,
				q.Resource+"/exec",
				aggregate.GroupVersion.Group,
				q.Namespace,
			),
		)
	}
	return nil
}

// Begin finds the job.
func (s *Shells) Begin(
	ctx context.Context,
	c aggregate.Command,
) (func(context.Context, aggregate.Streams) error, error) {
	f := &following{Reader: s.Reader, q: c.Query}
	var object runtime.Object
	var err error
	if c.Resource == v1alpha1.WorkflowResource {
		f.find = (&ofNode{Reader: s.Reader, q: c.Query}).find
		object, err = s.Reader.workflow(ctx, c.Query)
	} else {
		f.find = func(ctx context.Context) (found, error) { return s.Reader.find(ctx, c.Query) }
		object, err = s.Reader.job(ctx, c.Query)
	}
	if err != nil {
		return nil, err
	}
	if err := f.look(ctx); err != nil {
		return nil, err
	}
	if f.run == nil || f.proc == nil || f.proc.Status != ledger.StatusOpen {
		return nil, notYet(c.Query, "%s: there is no container to run anything in", f.at.why)
	}
	why, err := s.Closed(ctx, *f.run)
	if err != nil {
		return nil, err
	}
	if why != "" {
		return nil, refuse(http.StatusForbidden, metav1.StatusReasonForbidden, c.Query, "%s", why)
	}
	key := linkKey{c.User, f.run.UID, f.proc.JobID(), f.run.Attempt}
	if c.Port > 0 && s.links.has(key) { // its end would end that
		return s.forward(f, c, object, key), nil
	}
	err = f.ask(ctx, s.Reader.o.Wait) // the ledger is some seconds behind
	if apierrors.IsTooManyRequests(err) {
		return nil, err
	}
	if err != nil {
		return nil, apierrors.NewServiceUnavailable(
			fmt.Sprintf("HTCondor does not answer about job %s: %v", f.proc.JobID(), err),
		)
	}
	if f.seen.place != running {
		return nil, notYet(c.Query, "%s: there is no container to run anything in", f.seen.why)
	}
	if c.Port > 0 {
		return s.forward(f, c, object, key), nil
	}
	return func(ctx context.Context, streams aggregate.Streams) error {
		if !s.places.take(f.requester(), 1) {
			return apierrors.NewTooManyRequests("too many commands run in jobs at once: try again later", 10)
		}
		defer s.places.give(f.requester(), 1)
		s.Used(object, c.Query, fmt.Sprintf("%s runs a command in the container of job %s", c.User, f.proc.JobID()))
		return s.connect(ctx, f, func(client *ssh.Client) error { return runIn(ctx, client, c, streams) })
	}, nil
}

// connect connects to the sshd beside the job.
func (s *Shells) connect(ctx context.Context, f *following, fn func(*ssh.Client) error) error {
	id, err := s.Reader.o.Identity(ctx, *f.run)
	if err != nil {
		return err
	}
	cluster, proc := f.proc.Place()
	connected := false
	err = s.Connect(ctx, id, cluster, proc, func(client *ssh.Client) error {
		connected = true
		return fn(client)
	})
	if err != nil && !connected && ctx.Err() == nil {
		return apierrors.NewServiceUnavailable(
			fmt.Sprintf("HTCondor does not let anybody join job %s, which runs as far as it knows: %v. "+
				"If the job's node has gone, HTCondor notices it within minutes and runs the job elsewhere: try again then", f.proc.JobID(), err),
		)
	}
	return err
}

// gone replaces the words of the library where the connection to a job has ended.
func gone(ctx context.Context, err error) error {
	if ctx.Err() != nil || !errors.Is(err, io.EOF) && !errors.As(err, new(*ssh.ExitMissingError)) {
		return err
	}
	return errors.New("the connection to the job has ended: the job has ended, was removed, or its node has gone")
}

// opened returns what open returns, and io.EOF if the connection ends before that: open never returns if the library
// asks for a channel just when it has closed all others.
func opened[T any](open func() (T, error), lost <-chan struct{}) (T, error) {
	type answer struct {
		channel T
		err     error
	}
	answers := make(chan answer, 1)
	go func() {
		channel, err := open()
		answers <- answer{channel, err}
	}()
	select {
	case a := <-answers:
		return a.channel, a.err
	case <-lost:
		return *new(T), io.EOF
	}
}

// forward returns what connects the user with a port, by a link that his other connections to the job share.
func (s *Shells) forward(
	f *following,
	c aggregate.Command,
	object runtime.Object,
	key linkKey,
) func(context.Context, aggregate.Streams) error {
	return func(ctx context.Context, streams aggregate.Streams) error {
		if !s.forwarded.take(f.requester(), 1) {
			return apierrors.NewTooManyRequests("too many connections to jobs' ports at once: try again later", 10)
		}
		defer s.forwarded.give(f.requester(), 1)
		at, err := s.links.take(ctx, key, func(ctx context.Context, connected func(*ssh.Client) error) error {
			if !s.places.take(f.requester(), 1) {
				return apierrors.NewTooManyRequests("too many commands run in jobs at once: try again later", 10)
			}
			defer s.places.give(f.requester(), 1)
			s.Used(object, c.Query, fmt.Sprintf("%s connects to ports of job %s", c.User, f.proc.JobID()))
			return s.connect(ctx, f, connected)
		})
		if err != nil {
			return err
		}
		defer s.links.give(at)
		return forward(ctx, at, c.Port, streams)
	}
}

// runIn runs a command until it ends or the user has gone.
func runIn(ctx context.Context, client *ssh.Client, c aggregate.Command, streams aggregate.Streams) error {
	lost := make(chan struct{})
	go func() {
		defer close(lost)
		_ = client.Wait() // it says nothing that the session does not
	}()
	session, err := opened(client.NewSession, lost)
	if err != nil && !errors.As(err, new(*ssh.OpenChannelError)) {
		err = io.EOF // the library has various words for a connection that has ended
	}
	if err != nil {
		return gone(ctx, err)
	}
	defer session.Close()
	terminal := ""
	if c.TTY {
		terminal = "xterm"
		size := aggregate.Size{Width: 80, Height: 24}
		select {
		case size = <-streams.Sizes:
		default:
		}
		err := session.RequestPty(terminal, int(size.Height), int(size.Width), ssh.TerminalModes{})
		if errors.Is(err, io.EOF) {
			return gone(ctx, err)
		}
		if err != nil {
			return fmt.Errorf(
				"HTCondor's sshd on the job's node gives no terminal (its /dev/pts must be mounted with gid=5, and sshd says more there): %w",
				err,
			)
		}
	}
	session.Stdout, session.Stderr = streams.Stdout, streams.Stderr
	noise := &prelude{w: streams.Stderr}
	if c.TTY {
		noise.w, session.Stdout = streams.Stdout, noise
	} else {
		session.Stderr = noise
	}
	if streams.Stdin != nil {
		in, err := session.StdinPipe()
		if err != nil {
			return err
		}
		go func() {
			defer in.Close()
			_, _ = io.Copy(in, streams.Stdin) // the command may have ended
		}()
	}
	if err := session.Start(schedd.JoinCommand(c.Words, terminal)); err != nil {
		return gone(ctx, err)
	}
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		for {
			select {
			case size := <-streams.Sizes:
				_ = session.WindowChange(int(size.Height), int(size.Width)) // it may have ended
			case <-ctx.Done():
				_ = client.Close()
				return
			case <-ended:
				return
			}
		}
	}()
	err = session.Wait()
	noise.flush()
	if exit, exited := errors.AsType[*ssh.ExitError](err); exited {
		if exit.Signal() != "" {
			return aggregate.ExitError{Code: 128 + signals[exit.Signal()]}
		}
		return aggregate.ExitError{Code: exit.ExitStatus()}
	}
	return gone(ctx, err)
}

// signals are the numbers of those that a command may end by.
var signals = map[string]int{"HUP": 1, "INT": 2, "QUIT": 3, "ABRT": 6, "KILL": 9, "SEGV": 11, "PIPE": 13, "TERM": 15}
