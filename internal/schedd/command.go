package schedd

import (
	"cmp"
	"context"
	"errors"
	"io"
	"time"

	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/tool"
)

// command is one call of a condor_* tool.
type command struct {
	name    string
	args    []string
	dir     string
	timeout time.Duration
	id      Identity
	env     []string
	stdin   *io.PipeReader // nil: none
	read    func(io.Reader) error
	writes  []string                 // where it may write; empty: wherever the account may
	echoes  bool                     // its error messages may contain users' words
	answers func(*condor.Error) bool // which failures are answers; nil: none
	asked   Question                 // of a question about jobs: what a mirror is asked in the place of the tool
}

// run runs a tool. Its error is an *Error, or what the caller's read function returned.
func (c *Client) run(ctx context.Context, cmd command) error {
	return c.ofToken(ctx, cmd.id, c.once(ctx, cmd))
}

// once is run without determining why a token was refused.
func (c *Client) once(ctx context.Context, cmd command) error {
	began := time.Now()
	err := c.call(ctx, cmd)
	if c.o.Ran != nil {
		c.o.Ran(cmd.name, time.Since(began), err)
	}
	return err
}

func (c *Client) call(ctx context.Context, cmd command) error {
	t := tool.Command{
		Name: cmd.name, BinDir: c.o.BinDir, Args: cmd.args, Dir: cmd.dir,
		Env: append(c.environment(cmd.id), cmd.env...), Timeout: cmd.timeout, Read: cmd.read, Writes: cmd.writes,
	}
	if cmd.stdin != nil {
		read := cmd.read
		t.In, t.Read = cmd.stdin, func(r io.Reader) error { defer cmd.stdin.Close(); return read(r) }
	}
	err := tool.Run(ctx, t)
	var f *tool.Failure
	if !errors.As(err, &f) {
		return err
	}
	e := &condor.Error{Command: cmd.name, ExitCode: f.ExitCode, Stderr: plain(f.Words), Cause: f.Err}
	switch f.Cause {
	case tool.TimedOut:
		e.Kind = condor.Timeout
	case tool.Exited:
		e.Kind = classify(f.Lines, cmd.echoes)
		if kind, is := atCommit(f.Lines); is {
			e.Kind, e.AtCommit = kind, true
		}
	case tool.Interrupted:
		if errors.Is(f.Err, context.DeadlineExceeded) {
			e.Kind = condor.Timeout
		}
	case tool.ReaderFailed:
		var own *callerError
		if errors.As(f.Err, &own) {
			return own.error
		}
		// If a tool failed half-way, its exit explains the failure; its unfinished output does not.
		if e.Kind = classify(f.Lines, cmd.echoes); f.Words == "" {
			e.Stderr = f.Err.Error()
		}
	}
	if cmd.answers != nil && cmd.answers(e) {
		return nil
	}
	withName(e, cmd.args)
	if e.Kind == condor.Unreachable || e.Kind == condor.Timeout {
		c.usual.doubt(cmd.id)
	}
	return e
}

// callerError marks an error of the caller's read function, as opposed to a read error.
type callerError struct{ error }

// environment returns what a tool sees of htcd, besides the constants of package tool.
func (c *Client) environment(id Identity) []string {
	var env []string
	if c.o.CondorConfig != "" {
		env = append(env, "CONDOR_CONFIG="+c.o.CondorConfig)
	}
	if c.o.Krb5Config != "" {
		env = append(env, "KRB5_CONFIG="+c.o.Krb5Config)
	}
	// Without a name the library would look for the account's own cache.
	ccache := "/nonexistent"
	if id.CCache != "" {
		ccache = id.CCache
	}
	env = append(env, "KRB5CCNAME=FILE:"+ccache)
	// Nor may it use a token of this machine. With these set, SEC_TOKEN_SYSTEM_DIRECTORY and /tmp/bt_u<uid> are
	// ignored.
	env = append(
		env,
		"_condor_SEC_TOKEN_DIRECTORY="+cmp.Or(id.Tokens, "/nonexistent"),
		"_condor_SCITOKENS_FILE="+cmp.Or(id.SciToken, "/nonexistent"),
	)
	switch {
	case id.Tokens != "":
		env = append(env, "_condor_SEC_CLIENT_AUTHENTICATION_METHODS=IDTOKENS")
	case id.SciToken != "":
		env = append(env, "_condor_SEC_CLIENT_AUTHENTICATION_METHODS=SCITOKENS")
	}
	// The command line names the same schedd. This also shows it to settings that depend on it, such as
	// CREDD_HOST = $(SCHEDD_HOST), and to a configuration made by a site's own command.
	if id.Endpoint.Schedd != "" {
		env = append(env, "_condor_SCHEDD_HOST="+id.Endpoint.Schedd)
	}
	if id.Endpoint.Collector != "" {
		env = append(env, "_condor_COLLECTOR_HOST="+id.Endpoint.Collector)
	}
	return env
}
