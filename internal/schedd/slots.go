package schedd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"htc.cern.ch/htcd/internal/classad"
)

// Size is what a job asks for, or a slot has.
type Size struct {
	CPUs   int64 `json:"cpus"`
	GPUs   int64 `json:"gpus,omitempty"`
	Memory int64 `json:"memoryMiB"`
	Disk   int64 `json:"diskKiB,omitempty"`
}

// Slot is a slot of a machine, as the collector knows it. Of one that is partitioned for jobs, these parts are not
// listed.
type Slot struct {
	Machine string
	Whole   Size // with nothing running in it
	Free    Size // what a job could get now; nothing if it takes none
}

// notPart leaves out the parts into which slots are divided for jobs: the slots themselves show what remains of them.
const notPart = `SlotType =!= "Dynamic"`

// slotAttributes are requested of each slot.
const slotAttributes = "Machine,State,Offline,PartitionableSlot,Cpus,GPUs,Memory,Disk,TotalSlotCpus,TotalSlotGPUs,TotalSlotMemory,TotalSlotDisk"

// Slots calls fn for every slot that the collector knows. Only a nil error is an answer.
func (c *Client) Slots(ctx context.Context, id Identity, fn func(Slot)) error {
	args := []string{"-json", "-attributes", slotAttributes, "-constraint", notPart}
	if pool := c.pool(id); pool != "" {
		args = append(args, "-pool", pool)
	}
	return c.run(
		ctx,
		command{name: "condor_status", args: args, id: id, timeout: c.o.Timeout, read: func(r io.Reader) error {
			err := classad.ReadJSON(r, func(ad classad.Ad) error {
				if slot := newSlot(ad); slot.Machine != "" {
					fn(slot)
				}
				return nil
			})
			if err != nil {
				return fmt.Errorf("the answer cannot be read: %w", err)
			}
			return nil
		}},
	)
}

func newSlot(ad classad.Ad) Slot {
	number := func(name string) int64 {
		n, _ := ad.Get(name).Real()
		return max(0, int64(min(n, 1<<60)))
	}
	now := Size{CPUs: number("Cpus"), GPUs: number("GPUs"), Memory: number("Memory"), Disk: number("Disk")}
	s := Slot{Whole: Size{
		CPUs: max(now.CPUs, number("TotalSlotCpus")), GPUs: max(now.GPUs, number("TotalSlotGPUs")),
		Memory: max(now.Memory, number("TotalSlotMemory")), Disk: max(now.Disk, number("TotalSlotDisk")),
	}}
	s.Machine = interned(ad.Get("Machine"))
	divided, _ := ad.Get("PartitionableSlot").Bool()
	offline, _ := ad.Get("Offline").Bool()
	switch state, _ := ad.Get("State").Str(); {
	case offline:
	case state == "Unclaimed", divided && (state == "Claimed" || state == "Matched"):
		s.Free = now
	}
	return s
}

// Analysis is what condor_q -better-analyze says of a job.
type Analysis struct {
	Slots   int // it looked at
	Refused int // of them, by their own requirements
	Rejects int // by the job's
	Steps   []Step
}

// Step is a part of the job's requirements, and how many of the slots meet it.
type Step struct {
	Condition string
	Slots     int
}

var errNotAnalysed = errors.New("condor_q -better-analyze says nothing of this job")

// Analyse asks why a job gets none of the slots of these machines. They should be few: the tool reads everything that
// the collector knows of them.
func (c *Client) Analyse(ctx context.Context, id Identity, jobID string, machines []string) (Analysis, error) {
	args, err := c.target(ctx, id)
	if err != nil {
		return Analysis{}, err
	}
	these := fmt.Sprintf("%s && stringListIMember(Machine, %s)", notPart, classad.Quote(strings.Join(machines, ",")))
	args = append(args, "-allusers", "-better-analyze", jobID, "-nouserprios", "-mconstraint", these)
	var a Analysis
	err = c.run(
		ctx,
		command{
			name:    "condor_q",
			args:    args,
			id:      id,
			timeout: c.o.Timeout,
			echoes:  true,
			read: func(r io.Reader) (err error) {
				a, err = readAnalysis(r)
				return err
			},
		},
	)
	if err == nil && a.Slots == 0 {
		err = errNotAnalysed
	}
	return a, err
}
