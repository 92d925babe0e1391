// Command lab brings up the real parts that htcd works with, and disturbs them for tests. It lies in the bin directory
// of the lab it belongs to, and under the names of the lab's commands (kubectl, condor_q, ...) it is those too.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"htc.cern.ch/htcd/test/lab"
	"htc.cern.ch/htcd/test/lab/parts"
	"htc.cern.ch/htcd/test/lab/ports"
	"htc.cern.ch/htcd/test/lab/root"
	"htc.cern.ch/htcd/test/lab/supervisor"
)

const usage = `usage: lab COMMAND

  host                                install what the lab and the unit tests need of the host
  image [--clone DIR] [--version V] [--revision R] [--created TIME] [--archive FILE]
                                      build htcd's image, and the list of what is in it
  up [--clone DIR] [--without-htcd]   bring the lab up, or what has changed of it; CONDOR is the major version of its
                                      HTCondor
  down                                end the lab
  with [--clone DIR] COMMAND...       up, run a command, down; LAB_KEEP leaves a lab that ran before, or in
                                      which the command failed
  demo [workflow]                     run examples/retcode/zero.yaml, or examples/workflow/scan.yaml, and tell its end
  status                              the version of HTCondor, and a table of the parts
  stop|start|kill|freeze|thaw PART    disturb a part
  restart PART [-- FLAGS]             stop and start; FLAGS are added to htcd's
  as ACCOUNT PROGRAM...               run a program of the Debian root as root, htcd, robot, alice or admin
  logs PART                           print a part's log
`

func main() {
	code, err := run(os.Args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
	}
	os.Exit(code)
}

func run(argv []string) (int, error) {
	self, err := os.Executable()
	if err != nil {
		return 1, err
	}
	l, err := lab.Open(filepath.Dir(filepath.Dir(self)))
	if err != nil {
		return 1, err
	}
	if name := filepath.Base(argv[0]); name != "lab" {
		return wrapped(l, name, argv[1:])
	}
	if len(argv) < 2 {
		fmt.Fprint(os.Stderr, usage)
		return 2, nil
	}
	if argv[1] == "as" && len(argv) > 3 {
		return as(l, argv[2], false, argv[3], argv[4:])
	}

	if err := process(l, argv[1], argv[2:]); err != errNoProcess {
		return 1, err
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer cancel()
	if err := command(ctx, l, argv[1], argv[2:]); err != nil {
		return 1, err
	}
	return 0, nil
}

var errNoProcess = errors.New("not one of the lab's own processes")

// process runs this program as one of the processes that make up a lab. Signals have their default effect on them.
func process(l *lab.Lab, name string, args []string) error {
	switch name {
	case "init":
		return root.Init(args[1], l.Bin("lab"), "supervise", args[0])
	case "supervise":
		return supervise(l, args)
	case "registry":
		return parts.ServeRegistry(args[0])
	case "pause":
		parts.Pause()
		return nil
	case "receiver-net":
		return parts.Relay(args[0], args[1], args[2], args[3], args[4])
	}
	return errNoProcess
}

func command(ctx context.Context, l *lab.Lab, name string, args []string) error {
	switch name {
	case "host":
		return host(ctx)
	case "image":
		return image(ctx, args)
	case "up":
		return up(ctx, l, args)
	case "down":
		return down(ctx, l)
	case "demo":
		switch strings.Join(args, " ") {
		case "":
			return demo(ctx, l)
		case "workflow":
			return demoWorkflow(ctx, l)
		}
		return fmt.Errorf("demo %s: there is none; want nothing, or workflow", strings.Join(args, " "))
	case "with":
		return with(ctx, l, args)
	case "status":
		return status(ctx, l)
	case "logs":
		return logs(l, args)
	case lab.OpStop, lab.OpStart, lab.OpKill, lab.OpFreeze, lab.OpThaw, lab.OpRestart:
		return disturb(ctx, l, name, args)
	}
	return fmt.Errorf("unknown command %q\n%s", name, usage)
}

func supervise(l *lab.Lab, args []string) error {
	clone, planText, portsText := args[0], args[1], args[2]
	var plan root.Plan
	if err := json.Unmarshal([]byte(planText), &plan); err != nil {
		return err
	}
	var numbers ports.Ports
	if err := json.Unmarshal([]byte(portsText), &numbers); err != nil {
		return err
	}
	file := os.NewFile(3, "owner")
	owner, err := net.FileConn(file)
	if err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	defer owner.Close()
	return supervisor.Run(parts.NewWorld(l, numbers, clone, plan), plan, owner)
}
