package condor

import (
	"fmt"
)

// The hold of a suspended pool. Its code is that of every condor_hold; the subcode, which condor_hold -subcode sets, is
// nobody else's, so that exactly these jobs are released again.
const (
	PoolHoldCode    = 1
	PoolHoldSubCode = 7284
)

// PoolHeld is true for a job held because its pool is suspended.
var PoolHeld = fmt.Sprintf("HoldReasonCode =?= %d && HoldReasonSubCode =?= %d", PoolHoldCode, PoolHoldSubCode)

// PoolNotHeld is its opposite; an ad without a hold has neither attribute.
var PoolNotHeld = fmt.Sprintf("(HoldReasonCode =!= %d || HoldReasonSubCode =!= %d)", PoolHoldCode, PoolHoldSubCode)

// HeldByPool reports whether the job is on hold because its pool is suspended.
func (j Job) HeldByPool() bool {
	return j.Status == Held && j.HoldReasonCode == PoolHoldCode && j.HoldReasonSubCode == PoolHoldSubCode
}
