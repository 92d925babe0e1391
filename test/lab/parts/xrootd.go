package parts

import (
	"fmt"
	"os"
)

// xrootdConfig has places for the directories of the files and of the server's own, and for the port.
const xrootdConfig = `all.export /
oss.localroot %[1]s
all.adminpath %[2]s
all.pidpath %[2]s
xrd.port %[3]d
xrd.network nodnr
`

// XRootD serves files by root://, and takes them. It is for tests that ask for it: a lab comes up without it.
func XRootD(w World) (*Process, error) {
	files, err := directory("xrootd", 0o755, w.Lab.Path("xrootd", "files"))
	if err != nil {
		return nil, err
	}
	own, err := directory("xrootd", 0o755, w.Lab.Path("xrootd", "own"))
	if err != nil {
		return nil, err
	}
	config := w.Lab.Path("xrootd", "xrootd.cfg")
	if err := os.WriteFile(config, fmt.Appendf(nil, xrootdConfig, files, own, w.Ports.XRootD), 0o644); err != nil {
		return nil, err
	}
	return &Process{
		Name: "xrootd", Log: w.Lab.Log("xrootd"), Port: w.Ports.XRootD, Spare: true, Account: "xrootd",
		Args:  []string{"/usr/bin/xrootd", "-c", config, "-I", "v4"},
		Ready: tcpReady(w.Address, w.Ports.XRootD),
	}, nil
}
