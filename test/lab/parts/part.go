package parts

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"htc.cern.ch/htcd/test/lab"
	"htc.cern.ch/htcd/test/lab/ports"
	"htc.cern.ch/htcd/test/lab/root"
)

// Part can be disturbed and comes back only on request.
type Part interface {
	// Start returns when the part answers.
	Start(ctx context.Context) error
	// Stop and Kill return when the part is gone.
	Stop(ctx context.Context) error
	Kill(ctx context.Context) error
	Freeze() error
	Thaw() error
	Status() lab.Status
}

// World is what all parts know.
type World struct {
	Lab   *lab.Lab
	Ports ports.Ports
	// Clone is the directory of htcd's sources.
	Clone string
	// Address is where parts listen that a pod must reach: loopback, unless the lab has a node.
	Address string
	// Node is nil for a lab without one.
	Node *root.Node
}

// NewWorld returns the world of a lab made from plan.
func NewWorld(l *lab.Lab, numbers ports.Ports, clone string, plan root.Plan) World {
	w := World{Lab: l, Ports: numbers, Clone: clone, Address: "127.0.0.1", Node: plan.Node}
	if w.Node != nil {
		w.Address = root.NodeAddress
	}
	return w
}

// Host returns what HTCondor's clients take as the address's name, with NO_DNS.
func (w World) Host() string { return strings.ReplaceAll(w.Address, ".", "-") + "." + Domain }

// Record lets Open find the ports of a running lab.
func (w World) Record() error {
	text, err := json.Marshal(w)
	if err != nil {
		return err
	}
	return os.WriteFile(recordFile(w.Lab), text, 0o644)
}

// Open returns the world of a running lab.
func Open(l *lab.Lab) (World, error) {
	var w World
	text, err := os.ReadFile(recordFile(l))
	if err != nil {
		return w, err
	}
	if err := json.Unmarshal(text, &w); err != nil {
		return w, fmt.Errorf("%s: %w", recordFile(l), err)
	}
	return w, nil
}

func recordFile(l *lab.Lab) string { return l.Path("run", "world.json") }
