#include "textflag.h"

// func cpuid(leaf uint32) (answer [4]uint32)
TEXT ·cpuid(SB), NOSPLIT, $0-24
	MOVL	leaf+0(FP), AX
	XORL	CX, CX
	CPUID
	MOVL	AX, answer_0+8(FP)
	MOVL	BX, answer_1+12(FP)
	MOVL	CX, answer_2+16(FP)
	MOVL	DX, answer_3+20(FP)
	RET
