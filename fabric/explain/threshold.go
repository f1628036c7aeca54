package explain

import "github.com/verbena-rdma/verbena/fabric/sim"

// Every heuristic's threshold is here and nowhere else. A finding that a
// threshold keeps away is a finding that an engineer would not act on; where a
// number is published its source is named, the others are judgement.
const (
	// PFC trees (tree.go).

	// interiorPermille: an egress that was itself stopped for this share of the
	// time in which it made others stop is not the root: what limits it is
	// further on. Were it the tightest place, the next one would have room and
	// would not stop it, but for moments.
	interiorPermille = 100
	// lookBack: an egress of that kind that is not stopped at this instant is
	// counted as stopped if it was within this time. XOFF and XON alternate
	// every few tens of microseconds.
	lookBack = 100 * sim.Microsecond
	// windowGap separates two windows of one tree. Shorter gaps are the XON
	// half of XOFF/XON.
	windowGap = 50 * sim.Microsecond
	// pauseQuanta and quantumBits: a stop without refresh ends by itself
	// (802.1Qbb; 512 bit times a quantum, at most 65535).
	pauseQuanta = 65535
	quantumBits = 512
	// cutFactor bounds the stops that resolve makes by cutting, in parts of those
	// there are: an egress with two roots by turns changes all behind it each time.
	cutFactor = 8
	// maxDepth bounds chains of stops; longer than any path.
	maxDepth = 64
	// maxTrees, branches of a tree and branches below one are what is told in
	// full; the rest is summed up.
	maxTrees    = 4
	maxBranches = 24
	maxKids     = 4
	// smallTree: less of all stopped time than this, and a tree other than the
	// first is only named.
	smallTreePermille = 50

	// Root causes (cause.go).

	// overloadPermille: what can arrive at an egress, in parts of its rate,
	// from which it counts as overloaded.
	overloadPermille = 1050
	// offerMoves bounds the search for what NICs can bring by several ports.
	offerMoves = 1024
	// starvedPermille of a root's bytes in other priorities: they starve it.
	starvedPermille = 500
	// rerouteTime: a link that went down at the same node so long before the
	// first stop is named as a possible reason.
	rerouteTime = 10 * sim.Millisecond

	// Victims (victim.go).

	// victimSlowdown is the completion time over that at the max-min share,
	// from which a flow may be a victim.
	victimSlowdown = 1.5
	// victimStopPermille of its life a flow's way must have been stopped by a
	// root that is not on it.
	victimStopPermille = 100
	// roomPermille: the receiver's port was used less than that meanwhile.
	roomPermille = 900
	maxVictims   = 10
	// fluidWork bounds the max-min computation, in steps of the inner loops;
	// beyond half of it time goes on in equal steps, at most fluidSteps of them.
	// A second or so.
	fluidWork  = 1 << 28
	fluidSteps = 256

	// DCQCN (rate.go, burst.go).

	// heldShare: goodput over the flow's max-min share below which DCQCN holds
	// it (70 %, the doctor's rule "DCQCN throttles too early").
	heldShare = 0.7
	// heldStopPermille: stopped longer than that, PFC is the reason and not DCQCN.
	heldStopPermille = 200
	// heldLossPermille: more of its packets sent again, loss is the reason.
	heldLossPermille = 10
	// heldCNPs: fewer are an accident.
	heldCNPs = 2
	// burstJoin: flows that start so close together are one burst.
	burstJoin = 10 * sim.Microsecond
	// burstCount bursts at least, and the middle 80 % of their distances within
	// periodSpread of the median, make a period.
	burstCount   = 3
	periodSpread = 0.2
	// benignPermille: what all others take of the port on average, below which
	// there is no overload and a mark is a false alarm; and the part of the port
	// that the flow's max-min share must be.
	benignPermille = 500
	// cnpLossPermille of CNPs that never arrived are worth a word.
	cnpLossPermille = 10
	// silentStopPermille: an egress stopped longer than that without a single
	// mark in the network: ECN does not act before PFC (1 %, the doctor's rule).
	silentStopPermille = 10
	maxHeld            = 4
	maxMarkPorts       = 4

	// Fairness (fair.go).

	// jainFair: above it a group is called fair.
	jainFair = 0.9
	// unequal: the fastest over the slowest of a group from which it is asked
	// whether the switch shared by port.
	unequal = 1.2
	// alike: flows whose sizes and starts differ less (of the median size, of
	// the median life) are compared.
	alike = 0.1
	// busyPermille: an egress used more than that is a bottleneck.
	busyPermille = 800
	// portFairGain: the port-fair model must fit so many times better than the
	// flow-fair one, and to within portFairFit on average.
	portFairGain = 2.0
	portFairFit  = 0.25
	// modelFlows bounds the flows of one egress that the models look at.
	modelFlows = 1024

	// ECMP (ecmp.go).

	// polarisedShare: uplinks in use over what balls in bins expect.
	polarisedShare = 0.6
	// polarisedFlows: at least so many at the switches of the tier together.
	polarisedFlows = 8
	// collisionSlowdown: a collision that made no flow slower than that is not
	// worth a sentence.
	collisionSlowdown = 1.5
	// expectFlows bounds the flows and links for which the expectation is worked out.
	expectFlows = 128

	// Host limits (hostlimit.go).

	// oneQueuePermille of the bytes in one receive queue: it did all the work.
	oneQueuePermille = 900
	// atLimitPermille of a limit: it is reached.
	atLimitPermille = 900
	// limitCost: max-min share over the limit from which the limit costs.
	limitCost = 1.2
	maxHosts  = 6

	// Loss (loss.go).

	// deafStops: that many stops without a picosecond of pause at the other end.
	deafStops = 2
	// lossCostPermille of all packets sent again: loss is the main cause, whatever
	// else there is. Timeouts and failures always are.
	lossCostPermille = 50
	maxLossPlaces    = 6

	// Storms (deadlock.go): the egress was stopped to the end of the run.
	maxStorms = 6

	// Verdict (verdict.go): below it nothing is said to be slow.
	slowSlowdown = 1.5
	// maxAdvice is how many changes are proposed.
	maxAdvice = 2

	// Comparison (compare.go): a change smaller than that is none.
	samePermille = 10
)
