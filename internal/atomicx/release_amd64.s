//go:build !race && !explore

#include "textflag.h"

// func storeRelease64(p *uint64, v uint64)
// On amd64 every MOV to memory is a release store (Intel SDM vol. 3, 9.2.2: stores are not reordered with older loads or
// stores).
TEXT ·storeRelease64(SB), NOSPLIT, $0-16
	MOVQ	p+0(FP), AX
	MOVQ	v+8(FP), CX
	MOVQ	CX, (AX)
	RET

// func pause(n uint32)
TEXT ·pause(SB), NOSPLIT, $0-4
	MOVL	n+0(FP), AX
again:
	PAUSE
	SUBL	$1, AX
	JNZ	again
	RET

// func prefetch(p unsafe.Pointer)
TEXT ·prefetch(SB), NOSPLIT, $0-8
	MOVQ	p+0(FP), AX
	PREFETCHT0	(AX)
	RET

// func prefetchWrite(p unsafe.Pointer, n int)
TEXT ·prefetchWrite(SB), NOSPLIT, $0-16
	MOVQ	p+0(FP), AX
	MOVQ	n+8(FP), CX
again:
	SUBQ	$64, CX
	BYTE	$0x0F; BYTE $0x0D; BYTE $0x08 // PREFETCHW (AX), which the assembler does not know
	ADDQ	$64, AX
	TESTQ	CX, CX
	JGT	again
	RET
