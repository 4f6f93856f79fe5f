"""Federated methods, one a file. To add one: write the file, add a line here, and a test."""

from fedrepro.algorithms.afl import AFL
from fedrepro.algorithms.ditto import Ditto
from fedrepro.algorithms.fedavg import FedAvg
from fedrepro.algorithms.fedavg_transfer import FedAvgTransfer
from fedrepro.algorithms.fedmgda_plus import FedMGDAPlus
from fedrepro.algorithms.fedpd import FedPD
from fedrepro.algorithms.fedprox import FedProx
from fedrepro.algorithms.fedsgd import FedSGD
from fedrepro.algorithms.local import Local
from fedrepro.algorithms.q_ffl import QFFL
from fedrepro.algorithms.term import TERM
from fedrepro.core.algorithm import Algorithm
from fedrepro.studies.dfl.algorithms.dfl import DFL
from fedrepro.studies.fedlin.algorithms.closed_form import ClosedForm
from fedrepro.studies.fedlin.algorithms.fedavg_newcomers import FedAvgNewcomers
from fedrepro.studies.fedlin.algorithms.hm1 import HM1
from fedrepro.studies.fedlin.algorithms.hm2_ep import HM2EP
from fedrepro.studies.fedlin.algorithms.hm2_newcomers import HM2Newcomers
from fedrepro.studies.fedlin.algorithms.linear_reference import LinearReference
from fedrepro.studies.fgpr.algorithms.fgpr import FGPR
from fedrepro.studies.fgpr.algorithms.gp_baseline import GPBaseline
from fedrepro.studies.fgpr.algorithms.gp_distributed import GPDistributed
from fedrepro.studies.fgpr.algorithms.gp_maximum import GPMaximum
from fedrepro.studies.fgpr.algorithms.gp_separate import GPSeparate
from fedrepro.studies.gifair.algorithms.gifair_global import GIFAIRGlobal
from fedrepro.studies.gifair.algorithms.gifair_per import GIFAIRPer
from fedrepro.studies.gifair.algorithms.term_group import TERMGroup
from fedrepro.studies.omni.algorithms.fedsgd_authors import FedSGDAuthors
from fedrepro.studies.omni.algorithms.fedsgd_scaled import FedSGDScaled
from fedrepro.studies.omni.algorithms.omni_fedge import OmniFedge
from fedrepro.studies.omni.algorithms.omni_fedge_authors import OmniFedgeAuthors
from fedrepro.studies.sa.algorithms.fedavg_matched import FedAvgMatched
from fedrepro.studies.sa.algorithms.sa import SA
from fedrepro.studies.sa.algorithms.sa_tracked import SATracked
from fedrepro.studies.sgld.algorithms.fed_sgld import FedSGLD
from fedrepro.studies.sgld.algorithms.fed_sgld_coupled import FedSGLDCoupled
from fedrepro.studies.sgld.algorithms.fedpd_noisy import FedPDNoisy

ALGORITHMS: dict[str, type[Algorithm]] = {
    "afl": AFL,
    "closed_form": ClosedForm,
    "dfl": DFL,
    "ditto": Ditto,
    "fed_sgld": FedSGLD,
    "fed_sgld_coupled": FedSGLDCoupled,
    "fedavg": FedAvg,
    "fedavg_matched": FedAvgMatched,
    "fedavg_newcomers": FedAvgNewcomers,
    "fedavg_transfer": FedAvgTransfer,
    "fedmgda_plus": FedMGDAPlus,
    "fedpd": FedPD,
    "fedpd_noisy": FedPDNoisy,
    "fedprox": FedProx,
    "fedsgd": FedSGD,
    "fedsgd_authors": FedSGDAuthors,
    "fedsgd_scaled": FedSGDScaled,
    "fgpr": FGPR,
    "gifair_global": GIFAIRGlobal,
    "gifair_per": GIFAIRPer,
    "gp_baseline": GPBaseline,
    "gp_distributed": GPDistributed,
    "gp_maximum": GPMaximum,
    "gp_separate": GPSeparate,
    "hm1": HM1,
    "hm2_ep": HM2EP,
    "hm2_newcomers": HM2Newcomers,
    "linear_reference": LinearReference,
    "local": Local,
    "omni_fedge": OmniFedge,
    "omni_fedge_authors": OmniFedgeAuthors,
    "q_ffl": QFFL,
    "sa": SA,
    "sa_tracked": SATracked,
    "term": TERM,
    "term_group": TERMGroup,
}
