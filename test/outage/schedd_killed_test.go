package outage

import (
	"fmt"
	"testing"
	"time"

	"htc.cern.ch/htcd/test/trial"
)

// A schedd that dies within a second of a submit may keep the cluster half-spooled for ever, throw it away, or have it
// whole. The moments cover the submit itself, the spooling after it and the second thereafter.
func TestAScheddKilledAroundASubmitLeavesOneCluster(t *testing.T) {
	o := begin(t, "--reconcile-schedule=@every 5s")
	var names []string
	for after := time.Duration(0); after <= 1500*time.Millisecond; after += 125 * time.Millisecond {
		name := fmt.Sprintf("killed-after-%d", after.Milliseconds())
		names = append(names, name)
		o.Create(name, "exit 0\n", trial.Queue(2))
		time.Sleep(after) // the moment is the matter
		o.do(o.part("schedd").Kill)
		o.do(o.part("schedd").Start)
	}
	o.succeeded(names...)
	o.gone()
}
