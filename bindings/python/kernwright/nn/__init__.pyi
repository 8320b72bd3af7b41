"""What neural networks are made of: functions of arrays, each a kernel or two."""

from kernwright.nn import init as init
from kernwright.nn import quant as quant
from kernwright.nn._activations import *
from kernwright.nn._attention import *
from kernwright.nn._attention_backward import *
from kernwright.nn._attention_paged import *
from kernwright.nn._batch_norm import *
from kernwright.nn._cache import *
from kernwright.nn._conv._backward import *
from kernwright.nn._conv._forward import *
from kernwright.nn._embedding import *
from kernwright.nn._experts import *
from kernwright.nn._fused_matmul import *
from kernwright.nn._gates import *
from kernwright.nn._linear import *
from kernwright.nn._losses._entropy import *
from kernwright.nn._losses._likelihoods import *
from kernwright.nn._losses._linear_entropy import *
from kernwright.nn._losses._pairs import *
from kernwright.nn._modules.attention import *
from kernwright.nn._modules.containers import *
from kernwright.nn._modules.conv import *
from kernwright.nn._modules.dropout import *
from kernwright.nn._modules.linear import *
from kernwright.nn._modules.module import *
from kernwright.nn._modules.norms import *
from kernwright.nn._modules.recurrent import *
from kernwright.nn._norm import *
from kernwright.nn._norm_backward import *
from kernwright.nn._positions import *
from kernwright.nn._quantize import *
from kernwright.nn._recurrent._cells import *
from kernwright.nn._recurrent._gradients import *
from kernwright.nn._recurrent._networks import *
from kernwright.nn._rope import *
from kernwright.nn._sampling import *
from kernwright.nn._scaled import *
from kernwright.nn._softmax import *
from kernwright.nn._spatial._interpolation import *
from kernwright.nn._spatial._pixels import *
from kernwright.nn._spatial._pooling import *
from kernwright.nn._spatial._pooling_backward import *
