package supervisor

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"

	"htc.cern.ch/htcd/test/lab"
)

func (s *Supervisor) serve(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go s.answer(conn)
	}
}

func (s *Supervisor) answer(conn net.Conn) {
	defer conn.Close()
	var r lab.Request
	if err := json.NewDecoder(conn).Decode(&r); err != nil {
		return
	}
	enc := json.NewEncoder(conn)
	event, err := s.do(context.Background(), r, func(line string) { _ = enc.Encode(lab.Event{Progress: line}) })
	event.Done = true
	if err != nil {
		event.Error = err.Error()
	}
	_ = enc.Encode(event)
	if r.Op == lab.OpDown {
		s.once.Do(func() { close(s.down) })
	}
}

func (s *Supervisor) do(ctx context.Context, r lab.Request, progress func(string)) (lab.Event, error) {
	switch r.Op {
	case lab.OpStatus:
		return s.status(), nil
	case lab.OpDown:
		return lab.Event{}, s.stopAll(ctx, progress)
	}
	part, ok := s.parts[r.Part]
	if !ok {
		return lab.Event{}, fmt.Errorf("no part %q; there are %s", r.Part, strings.Join(s.order, ", "))
	}
	switch r.Op {
	case lab.OpStop:
		return lab.Event{}, part.Stop(ctx)
	case lab.OpStart:
		return lab.Event{}, part.Start(ctx)
	case lab.OpKill:
		return lab.Event{}, part.Kill(ctx)
	case lab.OpFreeze:
		return lab.Event{}, part.Freeze()
	case lab.OpThaw:
		return lab.Event{}, part.Thaw()
	case lab.OpRestart:
		if len(r.Args) > 0 && r.Part != "htcd" {
			return lab.Event{}, fmt.Errorf("%s takes no arguments", r.Part)
		}
		if err := part.Stop(ctx); err != nil {
			return lab.Event{}, err
		}
		if r.Part == "htcd" {
			s.htcd.SetExtra(r.Args)
		}
		return lab.Event{}, part.Start(ctx)
	}
	return lab.Event{}, fmt.Errorf("unknown request %q", r.Op)
}

func (s *Supervisor) status() lab.Event {
	var e lab.Event
	for _, name := range s.order {
		e.Parts = append(e.Parts, s.parts[name].Status())
	}
	return e
}

// stopAll gives parts with data to write the time to do so; the rest end with the namespace.
func (s *Supervisor) stopAll(ctx context.Context, progress func(string)) error {
	for _, name := range slices.Backward(s.order) {
		if name != "htcd" && name != "condor" {
			continue
		}
		if err := s.parts[name].Stop(ctx); err != nil {
			return err
		}
		progress(name + ": ended")
	}
	return nil
}
