package syncsecret

import (
	"bytes"
	"fmt"
	"time"

	"htc.cern.ch/htcd/internal/inputs/expiry"
)

// keepReason returns why the content that the Secret has is kept although the file has another, "" if the file's is
// written. A credential is never replaced by one that ends earlier, nor by one whose end cannot be read: that file may
// be half written.
func keepReason(has, file []byte) string {
	if len(has) == 0 || bytes.Equal(has, file) {
		return ""
	}
	hasEnd, known := expiry.Of(has)
	if !known {
		return ""
	}
	fileEnd, known := expiry.Of(file)
	switch {
	case !known:
		return fmt.Sprintf(
			"the Secret's ends at %s, and the file's end cannot be read: it may be half written",
			stamp(hasEnd),
		)
	case fileEnd.Before(hasEnd):
		return fmt.Sprintf("the Secret's ends at %s, later than the file's at %s", stamp(hasEnd), stamp(fileEnd))
	}
	return ""
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// warnBefore is how long before its end a file is reported: whoever renews it has probably stopped.
const warnBefore = time.Hour

// ending returns what is wrong with a credential whose end is near or past, "" if nothing.
func ending(content []byte, now time.Time) string {
	end, known := expiry.Of(content)
	switch {
	case !known || end.Sub(now) > warnBefore:
		return ""
	case end.After(now):
		return fmt.Sprintf("it ends soon, at %s: is it still being renewed?", stamp(end))
	}
	return fmt.Sprintf("it ended at %s: is it still being renewed?", stamp(end))
}
