package plugin

import (
	"net"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"htc.cern.ch/htcd/internal/cli/setting"
	"htc.cern.ch/htcd/internal/ledger/procset"
)

// maxNumber is more than the number of any job, attempt or line.
const maxNumber = 1 << 30

// mostTime is longer than anybody waits.
const mostTime = 10 * 365 * 24 * time.Hour

var (
	tableJSON = setting.OneOf("table", "json")
	numbers   = setting.Kind{Want: "numbers and ranges, such as 3,7-9", Check: func(text string) error {
		_, err := procset.Parse(text, maxNumber)
		return err
	}}
	nodeName = setting.Is("a node's name: at most 63 letters, digits, -, _ and .", func(text string) bool {
		return len(text) <= 63 && !strings.ContainsFunc(text, func(r rune) bool {
			return r != '-' && r != '_' && r != '.' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') &&
				(r < 'a' || r > 'z')
		})
	})
	stepName = setting.Is("a step's name: at most 63 letters, digits, -, _ and .", func(text string) bool {
		return text != "" && setting.Label.Check(text) == nil
	})
	selector = setting.Is("labels such as app=scan,tier!=test", func(text string) bool {
		_, err := labels.Parse(text)
		return err == nil
	})
	namespaces = setting.Is("names of namespaces with commas between them", func(text string) bool {
		for name := range strings.SplitSeq(text, ",") {
			if setting.Namespace.Check(name) != nil {
				return false
			}
		}
		return true
	})
	loopback = setting.Is("a loopback address, such as 127.0.0.1", func(text string) bool {
		ip := net.ParseIP(text)
		return ip != nil && ip.IsLoopback()
	})
)
