//go:build !race && !explore

#include "textflag.h"

// func storeRelease64(p *uint64, v uint64)
// STLR: store-release (Arm ARM, B2.3).
TEXT ·storeRelease64(SB), NOSPLIT, $0-16
	MOVD	p+0(FP), R0
	MOVD	v+8(FP), R1
	STLR	R1, (R0)
	RET

// func pause(n uint32)
TEXT ·pause(SB), NOSPLIT, $0-4
	MOVW	n+0(FP), R0
again:
	YIELD
	SUBW	$1, R0
	CBNZW	R0, again
	RET

// func prefetch(p unsafe.Pointer)
TEXT ·prefetch(SB), NOSPLIT, $0-8
	MOVD	p+0(FP), R0
	PRFM	(R0), PLDL1KEEP
	RET

// func prefetchWrite(p unsafe.Pointer, n int)
TEXT ·prefetchWrite(SB), NOSPLIT, $0-16
	MOVD	p+0(FP), R0
	MOVD	n+8(FP), R1
again:
	PRFM	(R0), PSTL1KEEP
	ADD	$64, R0
	SUBS	$64, R1
	BGT	again
	RET
