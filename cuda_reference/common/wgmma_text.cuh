// The text of wgmma (wgmma.cuh) for every number of columns: inline assembly has no names for operands, so that each number of
// sums has macros of its own, each longer than the one before.
//
// Q counts fours of a thread's registers that hold sums. D(i) is the i-th four of them as operands. WGMMA_Q(USE, D, TYPES, N) is
// USE(TYPES, N, the names "%0, %1, ..." of the sums, their operands, the names of the six operands that follow them).
#pragma once

#define WGMMA_NAMES_4 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define WGMMA_NAMES_5 WGMMA_NAMES_4 ", %16, %17, %18, %19"
#define WGMMA_NAMES_6 WGMMA_NAMES_5 ", %20, %21, %22, %23"
#define WGMMA_NAMES_7 WGMMA_NAMES_6 ", %24, %25, %26, %27"
#define WGMMA_NAMES_8 WGMMA_NAMES_7 ", %28, %29, %30, %31"
#define WGMMA_NAMES_9 WGMMA_NAMES_8 ", %32, %33, %34, %35"
#define WGMMA_NAMES_10 WGMMA_NAMES_9 ", %36, %37, %38, %39"
#define WGMMA_NAMES_11 WGMMA_NAMES_10 ", %40, %41, %42, %43"
#define WGMMA_NAMES_12 WGMMA_NAMES_11 ", %44, %45, %46, %47"
#define WGMMA_NAMES_13 WGMMA_NAMES_12 ", %48, %49, %50, %51"
#define WGMMA_NAMES_14 WGMMA_NAMES_13 ", %52, %53, %54, %55"
#define WGMMA_NAMES_15 WGMMA_NAMES_14 ", %56, %57, %58, %59"
#define WGMMA_NAMES_16 WGMMA_NAMES_15 ", %60, %61, %62, %63"
#define WGMMA_NAMES_17 WGMMA_NAMES_16 ", %64, %65, %66, %67"
#define WGMMA_NAMES_18 WGMMA_NAMES_17 ", %68, %69, %70, %71"
#define WGMMA_NAMES_19 WGMMA_NAMES_18 ", %72, %73, %74, %75"
#define WGMMA_NAMES_20 WGMMA_NAMES_19 ", %76, %77, %78, %79"
#define WGMMA_NAMES_21 WGMMA_NAMES_20 ", %80, %81, %82, %83"
#define WGMMA_NAMES_22 WGMMA_NAMES_21 ", %84, %85, %86, %87"
#define WGMMA_NAMES_23 WGMMA_NAMES_22 ", %88, %89, %90, %91"
#define WGMMA_NAMES_24 WGMMA_NAMES_23 ", %92, %93, %94, %95"
#define WGMMA_NAMES_25 WGMMA_NAMES_24 ", %96, %97, %98, %99"
#define WGMMA_NAMES_26 WGMMA_NAMES_25 ", %100, %101, %102, %103"
#define WGMMA_NAMES_27 WGMMA_NAMES_26 ", %104, %105, %106, %107"
#define WGMMA_NAMES_28 WGMMA_NAMES_27 ", %108, %109, %110, %111"
#define WGMMA_NAMES_29 WGMMA_NAMES_28 ", %112, %113, %114, %115"
#define WGMMA_NAMES_30 WGMMA_NAMES_29 ", %116, %117, %118, %119"
#define WGMMA_NAMES_31 WGMMA_NAMES_30 ", %120, %121, %122, %123"
#define WGMMA_NAMES_32 WGMMA_NAMES_31 ", %124, %125, %126, %127"

#define WGMMA_SUMS_4(D) D(0), D(1), D(2), D(3)
#define WGMMA_SUMS_5(D) WGMMA_SUMS_4(D), D(4)
#define WGMMA_SUMS_6(D) WGMMA_SUMS_5(D), D(5)
#define WGMMA_SUMS_7(D) WGMMA_SUMS_6(D), D(6)
#define WGMMA_SUMS_8(D) WGMMA_SUMS_7(D), D(7)
#define WGMMA_SUMS_9(D) WGMMA_SUMS_8(D), D(8)
#define WGMMA_SUMS_10(D) WGMMA_SUMS_9(D), D(9)
#define WGMMA_SUMS_11(D) WGMMA_SUMS_10(D), D(10)
#define WGMMA_SUMS_12(D) WGMMA_SUMS_11(D), D(11)
#define WGMMA_SUMS_13(D) WGMMA_SUMS_12(D), D(12)
#define WGMMA_SUMS_14(D) WGMMA_SUMS_13(D), D(13)
#define WGMMA_SUMS_15(D) WGMMA_SUMS_14(D), D(14)
#define WGMMA_SUMS_16(D) WGMMA_SUMS_15(D), D(15)
#define WGMMA_SUMS_17(D) WGMMA_SUMS_16(D), D(16)
#define WGMMA_SUMS_18(D) WGMMA_SUMS_17(D), D(17)
#define WGMMA_SUMS_19(D) WGMMA_SUMS_18(D), D(18)
#define WGMMA_SUMS_20(D) WGMMA_SUMS_19(D), D(19)
#define WGMMA_SUMS_21(D) WGMMA_SUMS_20(D), D(20)
#define WGMMA_SUMS_22(D) WGMMA_SUMS_21(D), D(21)
#define WGMMA_SUMS_23(D) WGMMA_SUMS_22(D), D(22)
#define WGMMA_SUMS_24(D) WGMMA_SUMS_23(D), D(23)
#define WGMMA_SUMS_25(D) WGMMA_SUMS_24(D), D(24)
#define WGMMA_SUMS_26(D) WGMMA_SUMS_25(D), D(25)
#define WGMMA_SUMS_27(D) WGMMA_SUMS_26(D), D(26)
#define WGMMA_SUMS_28(D) WGMMA_SUMS_27(D), D(27)
#define WGMMA_SUMS_29(D) WGMMA_SUMS_28(D), D(28)
#define WGMMA_SUMS_30(D) WGMMA_SUMS_29(D), D(29)
#define WGMMA_SUMS_31(D) WGMMA_SUMS_30(D), D(30)
#define WGMMA_SUMS_32(D) WGMMA_SUMS_31(D), D(31)

#define WGMMA_4(USE, D, TYPES, N) \
    USE(TYPES, N, WGMMA_NAMES_4, WGMMA_SUMS_4(D), "%16", "%17", "%18", "%19", "%20", "%21")
#define WGMMA_5(USE, D, TYPES, N) \
    USE(TYPES, N, WGMMA_NAMES_5, WGMMA_SUMS_5(D), "%20", "%21", "%22", "%23", "%24", "%25")
#define WGMMA_6(USE, D, TYPES, N) \
    USE(TYPES, N, WGMMA_NAMES_6, WGMMA_SUMS_6(D), "%24", "%25", "%26", "%27", "%28", "%29")
#define WGMMA_7(USE, D, TYPES, N) \
    USE(TYPES, N, WGMMA_NAMES_7, WGMMA_SUMS_7(D), "%28", "%29", "%30", "%31", "%32", "%33")
#define WGMMA_8(USE, D, TYPES, N) \
    USE(TYPES, N, WGMMA_NAMES_8, WGMMA_SUMS_8(D), "%32", "%33", "%34", "%35", "%36", "%37")
#define WGMMA_9(USE, D, TYPES, N) \
    USE(TYPES, N, WGMMA_NAMES_9, WGMMA_SUMS_9(D), "%36", "%37", "%38", "%39", "%40", "%41")
#define WGMMA_10(USE, D, TYPES, N) \
    USE(TYPES, N, WGMMA_NAMES_10, WGMMA_SUMS_10(D), "%40", "%41", "%42", "%43", "%44", "%45")
#define WGMMA_11(USE, D, TYPES, N) \
    USE(TYPES, N, WGMMA_NAMES_11, WGMMA_SUMS_11(D), "%44", "%45", "%46", "%47", "%48", "%49")
#define WGMMA_12(USE, D, TYPES, N) \
    USE(TYPES, N, WGMMA_NAMES_12, WGMMA_SUMS_12(D), "%48", "%49", "%50", "%51", "%52", "%53")
#define WGMMA_13(USE, D, TYPES, N) \
    USE(TYPES, N, WGMMA_NAMES_13, WGMMA_SUMS_13(D), "%52", "%53", "%54", "%55", "%56", "%57")
#define WGMMA_14(USE, D, TYPES, N) \
    USE(TYPES, N, WGMMA_NAMES_14, WGMMA_SUMS_14(D), "%56", "%57", "%58", "%59", "%60", "%61")
#define WGMMA_15(USE, D, TYPES, N) \
    USE(TYPES, N, WGMMA_NAMES_15, WGMMA_SUMS_15(D), "%60", "%61", "%62", "%63", "%64", "%65")
#define WGMMA_16(USE, D, TYPES, N) \
    USE(TYPES, N, WGMMA_NAMES_16, WGMMA_SUMS_16(D), "%64", "%65", "%66", "%67", "%68", "%69")
#define WGMMA_17(USE, D, TYPES, N) \
    USE(TYPES, N, WGMMA_NAMES_17, WGMMA_SUMS_17(D), "%68", "%69", "%70", "%71", "%72", "%73")
#define WGMMA_18(USE, D, TYPES, N) \
    USE(TYPES, N, WGMMA_NAMES_18, WGMMA_SUMS_18(D), "%72", "%73", "%74", "%75", "%76", "%77")
#define WGMMA_19(USE, D, TYPES, N) \
    USE(TYPES, N, WGMMA_NAMES_19, WGMMA_SUMS_19(D), "%76", "%77", "%78", "%79", "%80", "%81")
#define WGMMA_20(USE, D, TYPES, N) \
    USE(TYPES, N, WGMMA_NAMES_20, WGMMA_SUMS_20(D), "%80", "%81", "%82", "%83", "%84", "%85")
#define WGMMA_21(USE, D, TYPES, N) \
    USE(TYPES, N, WGMMA_NAMES_21, WGMMA_SUMS_21(D), "%84", "%85", "%86", "%87", "%88", "%89")
#define WGMMA_22(USE, D, TYPES, N) \
    USE(TYPES, N, WGMMA_NAMES_22, WGMMA_SUMS_22(D), "%88", "%89", "%90", "%91", "%92", "%93")
#define WGMMA_23(USE, D, TYPES, N) \
    USE(TYPES, N, WGMMA_NAMES_23, WGMMA_SUMS_23(D), "%92", "%93", "%94", "%95", "%96", "%97")
#define WGMMA_24(USE, D, TYPES, N) \
    USE(TYPES, N, WGMMA_NAMES_24, WGMMA_SUMS_24(D), "%96", "%97", "%98", "%99", "%100", "%101")
#define WGMMA_25(USE, D, TYPES, N) \
    USE(TYPES, N, WGMMA_NAMES_25, WGMMA_SUMS_25(D), "%100", "%101", "%102", "%103", "%104", "%105")
#define WGMMA_26(USE, D, TYPES, N) \
    USE(TYPES, N, WGMMA_NAMES_26, WGMMA_SUMS_26(D), "%104", "%105", "%106", "%107", "%108", "%109")
#define WGMMA_27(USE, D, TYPES, N) \
    USE(TYPES, N, WGMMA_NAMES_27, WGMMA_SUMS_27(D), "%108", "%109", "%110", "%111", "%112", "%113")
#define WGMMA_28(USE, D, TYPES, N) \
    USE(TYPES, N, WGMMA_NAMES_28, WGMMA_SUMS_28(D), "%112", "%113", "%114", "%115", "%116", "%117")
#define WGMMA_29(USE, D, TYPES, N) \
    USE(TYPES, N, WGMMA_NAMES_29, WGMMA_SUMS_29(D), "%116", "%117", "%118", "%119", "%120", "%121")
#define WGMMA_30(USE, D, TYPES, N) \
    USE(TYPES, N, WGMMA_NAMES_30, WGMMA_SUMS_30(D), "%120", "%121", "%122", "%123", "%124", "%125")
#define WGMMA_31(USE, D, TYPES, N) \
    USE(TYPES, N, WGMMA_NAMES_31, WGMMA_SUMS_31(D), "%124", "%125", "%126", "%127", "%128", "%129")
#define WGMMA_32(USE, D, TYPES, N) \
    USE(TYPES, N, WGMMA_NAMES_32, WGMMA_SUMS_32(D), "%128", "%129", "%130", "%131", "%132", "%133")
