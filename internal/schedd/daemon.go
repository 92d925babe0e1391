package schedd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"htc.cern.ch/htcd/internal/classad"
)

// Daemon is what a schedd tells the collector about itself.
type Daemon struct {
	Started int64 // when the process started, in Unix seconds by its own clock
	// QueueBorn is when its queue was set up, in the same way; 0: it does not say. A restart keeps the queue, and this.
	QueueBorn int64
	// Queues are those with which it has answered, in order, the last of which is that one, as far as Client's caller
	// remembers them.
	Queues []Queue
	// DutyCycle is the share of its recent time, 0 to 1, in which the schedd was busy: at 1 it does not keep up.
	DutyCycle float64
}

// Queue is one with which a schedd answered from some time on.
type Queue struct {
	Born  int64 // see Daemon.QueueBorn
	Since time.Time
}

const daemonAttributes = "DaemonStartTime,JobQueueBirthdate,RecentDaemonCoreDutyCycle"

var errNoDaemon = errors.New("the collector does not know this schedd, or not when it started")

// Daemon asks the collector about the schedd. The schedd itself is not asked.
func (c *Client) Daemon(ctx context.Context, id Identity) (Daemon, error) {
	name := id.Endpoint.Schedd
	if name == "" {
		var err error
		if name, err = c.ScheddName(ctx, id); err != nil {
			return Daemon{}, err
		}
	}
	args := []string{"-schedd", name, "-json", "-attributes", daemonAttributes}
	if pool := c.pool(id); pool != "" {
		args = append(args, "-pool", pool)
	}
	var d Daemon
	err := c.run(
		ctx,
		command{name: "condor_status", args: args, id: id, timeout: c.o.Timeout, read: func(r io.Reader) error {
			err := classad.ReadJSON(r, func(ad classad.Ad) error {
				d.Started = seconds(ad.Get("DaemonStartTime"))
				d.QueueBorn = seconds(ad.Get("JobQueueBirthdate"))
				d.DutyCycle, _ = ad.Get("RecentDaemonCoreDutyCycle").Real()
				return nil
			})
			if err != nil {
				return fmt.Errorf("the answer cannot be read: %w", err)
			}
			return nil
		}},
	)
	if err == nil && d.Started == 0 {
		err = errNoDaemon
	}
	return d, err
}
